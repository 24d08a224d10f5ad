import CacheCore
import Testing

@Suite struct JSONTests {
    @Test(
        "Parses every kind of value",
        arguments: [
            ("null", JSON.null), (" true ", .bool(true)), ("0", .integer(0)), ("-7", .integer(-7)),
            ("9223372036854775807", .integer(.max)), ("1.5", .number(1.5)), ("1e3", .integer(1000)),
            ("-0.5e-1", .number(-0.05)),
            (#""a\"\\\/\b\f\n\r\t\u00e9\ud83c\udfac""#, .string("a\"\\/\u{8}\u{c}\n\r\té🎬")),
            ("[]", .array([])), ("[1,[2]]", [1, [2]]), ("{}", .object([])),
            (#"{"b":1,"a":{"c":null}}"#, ["b": 1, "a": ["c": .null]]),
        ] as [(String, JSON)])
    func readsEveryKindOfValue(text: String, value: JSON) throws {
        #expect(try JSONParser.parse(text.utf8) == value)
    }

    @Test(
        "Rejects malformed JSON",
        arguments: [
            "", " ", "nul", "truex", "01", "1.", ".5", "+1", "1e", "-", "NaN", "\"", "\"\u{1}\"", #""\x""#, #""\u12""#,
            #""\ud800""#, #""\ud800\u0041""#, "[1,]", "[1 2]", "[", "{\"a\":1,}", "{a:1}", "{\"a\" 1}",
            "{\"a\":1,\"a\":2}",
            "1 2", "{\"a\":1e999}", "'a'", "// no",
        ])
    func refusesWhatIsNotJSON(text: String) {
        #expect(throws: CacheError.self) { try JSONParser.parse(text.utf8) }
    }

    @Test("Rejects invalid UTF-8")
    func refusesBytesThatAreNotUTF8() {
        #expect(throws: CacheError.self) { try JSONParser.parse([0x22, 0xFF, 0x22]) }
    }

    @Test("Rejects excessive nesting")
    func refusesEndlessNesting() {
        let text = String(repeating: "[", count: 100_000)
        #expect(throws: CacheError.self) { try JSONParser.parse(text.utf8) }
    }

    @Test("Rejects more than 1,000,000 values")
    func refusesManyValues() throws {
        let values = Array(repeating: "1", count: 999_999)
        guard case .array(let parsed) = try JSONParser.parse("[\(values.joined(separator: ","))]".utf8) else {
            Issue.record("The value is no array.")
            return
        }
        #expect(parsed.count == values.count)
        #expect(throws: CacheError.self) { try JSONParser.parse("[\((values + ["1"]).joined(separator: ","))]".utf8) }
    }

    @Test("A written value parses to the same value")
    func writesWhatItReads() throws {
        let value: JSON = [
            "text": "quote \" back \\ line \n control \u{7} é 🎬", "numbers": [0, -1, .integer(.max), .number(0.25)],
            "empty": .object([]), "none": .null, "yes": .bool(true),
        ]
        #expect(try JSONParser.parse(value.text.utf8) == value)
    }

    @Test("Infinite numbers are written as null")
    func neverWritesAnInfinity() {
        #expect(JSON.array([.number(.infinity), .number(.nan)]).text == "[null,null]")
    }
}
