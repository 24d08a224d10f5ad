import CacheCore
import Testing

/// Transfers of bytes that a reader is expected to want soon.
@Suite struct FillLedgerAnticipationTests {
    private static let length: Int64 = 10 << 20
    private static let index = 9 << 20..<length

    private static func ledger(onDisk: [ByteRange] = [], acceptsRanges: Bool? = true) -> FillLedger {
        var ledger = FillLedger(
            settings: FillLedger.Settings(), length: length, acceptsRanges: acceptsRanges,
            extents: ByteRangeSet(onDisk))
        ledger.hasFlowControl = true
        return ledger
    }

    private static func requested(_ actions: [FillLedger.Action]) -> [ByteRange] {
        actions.starts.compactMap { start in if case .window(let range) = start.fillRequest { range } else { nil } }
    }

    @Test("The transfer before it goes on until the anticipated one is answered")
    func shortensWhenAnswered() throws {
        var ledger = Self.ledger()
        let (reader, _) = ledger.join(opening: .from(0), priority: .live, needsConfirmation: false)
        let first = ledger.want(0..<Self.length, by: reader)
        #expect(Self.requested(first) == [0..<Self.length])
        let actions = ledger.anticipate(Self.index)
        let started = actions.compactMap { action in if case .start(_, let start) = action { start } else { nil } }
        #expect(Self.requested(actions) == [Self.index] && actions.count == 1)
        #expect(started.map(\.sizedBy) == [.anticipatedIndex] && started.map(\.priority) == [.readAhead])
        #expect(ledger.anticipate(Self.index).isEmpty, "The bytes are on the way.")
        let answered = ledger.began(
            try Self.fill(actions), window: Self.index, length: Self.length, acceptsRanges: true)
        #expect(answered.contains { if case .shorten(_, to: 9 << 20) = $0 { true } else { false } })
    }

    @Test("A failure has no effect on the transfer before it and on its readers")
    func failure() throws {
        var ledger = Self.ledger(onDisk: [0..<(8 << 20)])
        let (reader, _) = ledger.join(opening: .from(0), priority: .live, needsConfirmation: false)
        let main = try Self.fill(ledger.want(8 << 20..<Self.length, by: reader))
        _ = ledger.began(main, window: 8 << 20..<Self.length, length: Self.length, acceptsRanges: true)
        let anticipated = try Self.fill(ledger.anticipate(Self.index))
        let actions = ledger.broke(anticipated, with: .upstreamRefused(status: 404), isWorthRetrying: false)
        #expect(actions.starts.isEmpty && !actions.contains { if case .shorten = $0 { true } else { false } })
        Self.readAll(&ledger, reader, from: main)
        #expect(ledger.isComplete)
    }

    @Test("A reader that arrives before the answer does not wait for it")
    func slowAnswer() throws {
        var ledger = Self.ledger(onDisk: [0..<(8 << 20)])
        let (reader, _) = ledger.join(opening: .from(0), priority: .live, needsConfirmation: false)
        let main = try Self.fill(ledger.want(8 << 20..<Self.length, by: reader))
        _ = ledger.began(main, window: 8 << 20..<Self.length, length: Self.length, acceptsRanges: true)
        let anticipated = try Self.fill(ledger.anticipate(Self.index))
        let actions = Self.readAll(&ledger, reader, from: main)
        #expect(actions.contains(.cut(anticipated)) && !ledger.isComplete)
        _ = ledger.broke(anticipated, with: .cancelled, isWorthRetrying: false)
        Self.readAll(&ledger, reader, from: main)
        #expect(ledger.isComplete)
    }

    private static func fill(_ actions: [FillLedger.Action]) throws -> FillLedger.FillID {
        try #require(actions.compactMap { if case .start(let id, _) = $0 { id } else { nil } }.first)
    }

    /// The fill brings all bytes that it is allowed to store, and the reader consumes them. Returns the actions.
    @discardableResult
    private static func readAll(
        _ ledger: inout FillLedger, _ reader: FillLedger.ReaderID, from fill: FillLedger.FillID
    ) -> [FillLedger.Action] {
        var allowance = ledger.claim(of: fill, bringing: 0..<length).upperBound
        var seen: [FillLedger.Action] = []
        for _ in 0..<1000 {
            var actions = ledger.arrived(fill, upTo: allowance)
            while case (.bytes(let run), let more) = ledger.poll(reader) {
                actions += more + ledger.advance(reader, to: run.upperBound)
            }
            actions += ledger.tick()
            seen += actions
            let allowed = actions.compactMap { if case .allow(fill, let end) = $0 { end } else { nil } }
            guard let most = allowed.max(), most > allowance else { return seen }
            allowance = most
        }
        return seen
    }

    @Test("Nothing is requested if the bytes are there, or if one transfer must bring all bytes")
    func requestsNothing() {
        var complete = Self.ledger(onDisk: [Self.index])
        #expect(complete.anticipate(Self.index).isEmpty)
        var sequential = Self.ledger(acceptsRanges: false)
        #expect(sequential.anticipate(Self.index).isEmpty)
        var unknown = FillLedger(settings: FillLedger.Settings())
        #expect(unknown.anticipate(Self.index).isEmpty)
        var inside = Self.ledger()
        #expect(inside.anticipate(8 << 20..<9 << 20).isEmpty)
    }

    @Test("Without a reader the transfer is kept for some seconds, then cut")
    func isKept() throws {
        var ledger = Self.ledger()
        ledger.now = .seconds(10)
        let (reader, _) = ledger.join(opening: .from(0), priority: .live, needsConfirmation: false)
        _ = ledger.want(0..<Self.length, by: reader)
        let actions = ledger.anticipate(Self.index)
        let fill = try Self.fill(actions)
        _ = ledger.began(fill, window: Self.index, length: Self.length, acceptsRanges: true)
        #expect(!ledger.leave(reader).contains(.cut(fill)))
        ledger.now = .seconds(12)
        #expect(!ledger.tick().contains(.cut(fill)))
        ledger.now = .seconds(16)
        #expect(ledger.tick().contains(.cut(fill)))
    }
}
