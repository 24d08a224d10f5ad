import CacheCore
import Testing

@Suite struct ContentRangeTests {
    private static let readable: [(String, ContentRange)] = [
        ("bytes 42-1233/1234", ContentRange.run(42..<1234, of: 1234)),
        ("bytes 42-1233/*", .run(42..<1234, of: nil)),
        ("bytes */1234", .unsatisfied(of: 1234)),
        ("bytes 0-0/1", .run(0..<1, of: 1)),
        ("Bytes 0-0/1", .run(0..<1, of: 1)),
        ("bytes */0", .unsatisfied(of: 0)),
    ]

    @Test("Parses and writes every form", arguments: readable)
    func readsAndWrites(text: String, range: ContentRange) {
        #expect(ContentRange.parse(text) == range)
        #expect(ContentRange.parse(range.description) == range)
    }

    @Test(
        "Rejects malformed values",
        arguments: [
            "", "bytes", "bytes 0-1", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-9/10x", "bytes -1/10", "bytes 0-/10",
            "items 0-9/10", "bytes */*", "bytes 0-99999999999999999999/*", "bytes 0-9/99999999999999999999",
            "bytes=0-9/10",
            "bytes 0-9 /10", "bytes 0-9/-10", "bytes 0-9007199254740992/*",
            "bytes 9223372036854775796-9223372036854775805/9223372036854775806",
        ])
    func refusesWhatIsGarbled(text: String) {
        #expect(ContentRange.parse(text) == nil)
    }

    @Test("Writes every form")
    func writesWhatItReads() {
        #expect(ContentRange.run(0..<500, of: 1234).description == "bytes 0-499/1234")
        #expect(ContentRange.run(0..<2, of: nil).description == "bytes 0-1/*")
        #expect(ContentRange.unsatisfied(of: 47022).description == "bytes */47022")
    }
}
