import Testing

@testable import LarderServer

@Suite struct EventStreamParserTests {
    private func events(_ pieces: [String]) throws -> [ServerSentEvent] {
        var parser = EventStreamParser()
        return try pieces.flatMap { try parser.parse($0.utf8) }
    }

    @Test("An event has its type, its data and its identifier")
    func anEventIsParsed() throws {
        let events = try events(["event: state\nid: 7\ndata: {\"a\":1}\n\n"])

        #expect(events == [ServerSentEvent(type: "state", data: #"{"a":1}"#, id: "7")])
    }

    @Test("An event is the same in any division into pieces")
    func piecesOfAnySizeAreAccepted() throws {
        let text = "\u{FEFF}: hello\r\nevent: second\r\ndata: one\rdata:two\n\nid: é9\ndata\n\n"
        let bytes = Array(text.utf8)
        let whole = try events([text])

        for split in 1..<bytes.count {
            var parser = EventStreamParser()
            #expect(try parser.parse(bytes[..<split]) + parser.parse(bytes[split...]) == whole)
        }
        #expect(
            whole == [
                ServerSentEvent(type: "second", data: "one\ntwo", id: ""),
                ServerSentEvent(type: "message", data: "", id: "é9"),
            ])
    }

    @Test("Each line end is accepted", arguments: ["\n", "\r", "\r\n"])
    func lineEndsAreAccepted(_ end: String) throws {
        let events = try events([["data: 1", "", "data: 2", "", ""].joined(separator: end)])

        #expect(events.map(\.data) == ["1", "2"])
    }

    @Test("Comments, unknown fields and events without data are ignored")
    func otherLinesAreIgnored() throws {
        #expect(
            try events([":\n\n", "event: state\n\n", "retry: 5\nother: x\n\n", "data: 1\n\n"]).map(\.type) == [
                "message"
            ])
    }

    @Test("The identifier stays for later events, also that of an event without data")
    func theIdentifierStays() throws {
        let events = try events(["id: 1\n\n", "data: a\n\n", "id: 2\u{0}\ndata: b\n\n", "id\ndata: c\n\n"])

        #expect(events.map(\.id) == ["1", "1", ""])
    }

    @Test("Only the first blank after the colon is removed")
    func oneBlankIsRemoved() throws {
        #expect(try events(["data:  x \n\n"]).map(\.data) == [" x "])
    }

    @Test("An event without an end is not returned")
    func anIncompleteEventIsNotReturned() throws {
        #expect(try events(["data: 1\n"]).isEmpty)
    }

    @Test("An overlong event is rejected, in one line or in many")
    func anOverlongEventIsRejected() {
        var parser = EventStreamParser(eventLimit: 100)
        #expect(throws: EventStreamParser.Overlong.self) { try parser.parse(Array(repeating: 120, count: 101)) }
        var other = EventStreamParser(eventLimit: 100)
        #expect(throws: EventStreamParser.Overlong.self) {
            for _ in 0..<20 { _ = try other.parse("data: 12345\n".utf8) }
        }
    }
}
