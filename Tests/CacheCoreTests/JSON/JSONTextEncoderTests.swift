import TestChance
import Testing

@testable import CacheCore

@Suite struct JSONTextEncoderTests {
    private struct Inner: Codable, Equatable {
        var name: String
        var sizes: [Int]
    }

    private struct Outer: Codable, Equatable {
        var text: String
        var number: Double?
        var count: Int64
        var flag: Bool?
        var inner: Inner?
        var list: [Inner]
        var at: Timestamp?
        var absent: Omittable<Int> = .absent
        var null: Omittable<Int> = .null
        var given: Omittable<Int> = .value(5)
    }

    /// Adds its members to those of another value.
    private struct Flattened: Encodable {
        func encode(to encoder: any Encoder) throws {
            try Inner(name: "a", sizes: [1]).encode(to: encoder)
            try ["more": [2]].encode(to: encoder)
            var container = encoder.container(keyedBy: JSONKey.self)
            var nested = container.nestedContainer(keyedBy: JSONKey.self, forKey: JSONKey("deep"))
            try nested.encode(true, forKey: JSONKey("x"))
            var items = container.nestedUnkeyedContainer(forKey: JSONKey("items"))
            try items.encode(1)
            try items.encodeNil()
            try container.encode("end", forKey: JSONKey("last"))
        }
    }

    private struct Empty: Encodable {
        func encode(to encoder: any Encoder) {}
    }

    @Test("Members without a value are null, and absent ones are left out")
    func nilIsNull() {
        let value = Outer(text: "a", count: -3, list: [])

        #expect(
            value.jsonText == """
                {"text":"a","number":null,"count":-3,"flag":null,"inner":null,"list":[],"at":null,"null":null,"given":5}
                """)
    }

    private struct Optionals: Encodable {
        var a: Bool?, b: String?, c: Double?, d: Float?, e: Int?, f: Int8?, g: Int16?, h: Int32?, i: Int64?
        var j: UInt?, k: UInt8?, l: UInt16?, m: UInt32?, n: UInt64?, o: [Int]?
    }

    @Test("A nil of each type is null")
    func eachNilIsNull() throws {
        let tree = try JSONParser.parse(Optionals().jsonBytes)
        guard case .object(let members) = tree else { throw CacheError(.internal, "no object") }
        #expect(members.map(\.key).joined() == "abcdefghijklmno" && members.allSatisfy { $0.value == .null })
        let values = Optionals(
            a: true, b: "x", c: 1.5, d: 0.5, e: 1, f: 2, g: 3, h: 4, i: 5, j: 6, k: 7, l: 8, m: 9, n: 10, o: [])
        #expect(
            values.jsonText == """
                {"a":true,"b":"x","c":1.5,"d":0.5,"e":1,"f":2,"g":3,"h":4,"i":5,"j":6,"k":7,"l":8,"m":9,"n":10,"o":[]}
                """)
    }

    @Test("Objects and arrays are nested and closed")
    func nesting() {
        let inner = Inner(name: "n", sizes: [1, 2])
        let value = Outer(
            text: "", number: 1.5, count: 12, flag: true, inner: inner, list: [inner, Inner(name: "", sizes: [])],
            at: Timestamp(milliseconds: 1_795_248_000_123))

        #expect(
            value.jsonText == """
                {"text":"","number":1.5,"count":12,"flag":true,"inner":{"name":"n","sizes":[1,2]},\
                "list":[{"name":"n","sizes":[1,2]},{"name":"","sizes":[]}],"at":"2026-11-21T08:00:00.123Z",\
                "null":null,"given":5}
                """)
        #expect(["a": Optional<Int>.none].jsonText == #"{"a":null}"#)
    }

    @Test("Several containers of one value make one object")
    func flattening() {
        #expect(
            [Flattened()].jsonText
                == #"[{"name":"a","sizes":[1],"more":[2],"deep":{"x":true},"items":[1,null],"last":"end"}]"#)
        #expect([Empty(), Empty()].jsonText == "[{},{}]")
    }

    @Test(
        "Texts and numbers have the same form as in JSON values",
        arguments: [
            "", "plain", "\"\\/", "\n\r\t\u{8}\u{1F}\u{0}", "é€𝄞\u{2028}", "{", "[", "a{", "0",
        ])
    func textsAreEscaped(_ text: String) throws {
        #expect(text.jsonText == JSON.string(text).text)
        #expect(try JSONParser.parse(["[": text].jsonBytes) == ["[": .string(text)])
        for number in [0, -0.0, 1, 9, 10, -1, 0.1, 1e15, 1e300, -2.5, .infinity, .nan] {
            #expect(number.jsonText == JSON.number(number).text)
        }
        for number in [0, 9, 10, -1, .max, .min] as [Int64] { #expect(number.jsonText == "\(number)") }
    }

    @Test("An encoded value is decoded as it was, and its text is that of its tree")
    func valuesAreDecodedAsTheyWere() throws {
        var (random, _) = SeededRandom.announced()
        for _ in 0..<200 {
            let scalars = (0..<random.next() % 9).map { _ in
                Unicode.Scalar(UInt16.random(in: 1..<0xD800, using: &random))!
            }
            let text = String(String.UnicodeScalarView(scalars))
            let sizes = (0..<Int.random(in: 0..<4, using: &random)).map { _ in Int.random(in: -99...99, using: &random)
            }
            let inner = Bool.random(using: &random) ? Inner(name: text, sizes: sizes) : nil
            let value = Outer(
                text: text, number: Double.random(in: -1e9...1e9, using: &random),
                count: Int64.random(in: .min ... .max, using: &random), inner: inner,
                list: Array(repeating: Inner(name: "x", sizes: sizes), count: sizes.count),
                at: Timestamp(milliseconds: Int64.random(in: 0...2_000_000_000_000, using: &random)))
            let tree = try JSONParser.parse(value.jsonBytes)

            #expect(try tree.decode(Outer.self, isStrict: false) == value)
            #expect(tree.text == value.jsonText && tree.jsonText == value.jsonText)
        }
    }

    @Test("Names that no type declares keep their order")
    func namesKeepTheirOrder() throws {
        let values = NamedValues([("total", 3), ("hit", 1), ("a", 2)])

        #expect(values.jsonText == #"{"total":3,"hit":1,"a":2}"#)
        let decoded = try JSONParser.parse(values.jsonBytes).decode(NamedValues<Int>.self)
        #expect(decoded["hit"] == 1 && decoded["none"] == nil && decoded.members.count == 3)
    }
}
