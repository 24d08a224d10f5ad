import CacheCore
import ReaderAccess
import TestChance
import Testing

struct TokensFileTests {
    private static let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

    private static let full = #"""
        {"tokens":[{"id":"anna","sha256":"\#(digest)","scope":"write","origins":["media"],"prefixes":["/o/media/pub/"],
        "expiresAt":"2027-01-01T00:00:00Z","maxBytesPerSecond":1000,"maxSignatureSeconds":60,
        "sharedCache":true},
        {"id":"cam-1","subjects":["CN=cam","URI:spiffe://x/y","DNS:cam.example","EMAIL:a@b"],"scope":"read"}]}
        """#

    @Test("A complete file is read")
    func complete() throws {
        let file = try TokensFile.parse(Self.full.utf8)
        let anna = try #require(file.entries.first)
        #expect(anna.reader.id == "anna")
        #expect(anna.reader.scope == .write)
        #expect(anna.reader.limits.origins == ["media"])
        #expect(anna.reader.limits.prefixes == ["/o/media/pub/"])
        #expect(anna.reader.expiresAt == RFC3339.parse("2027-01-01T00:00:00Z"))
        #expect(anna.reader.maxBytesPerSecond == 1000)
        #expect(anna.reader.maxSignatureSeconds == 60)
        #expect(anna.reader.isSharedCache && file.entries.last?.reader.isSharedCache == false)
        #expect(anna.digest == TokenDigest(of: "test"))
        #expect(file.entries.last?.subjects == ["CN=cam", "URI:spiffe://x/y", "DNS:cam.example", "EMAIL:a@b"])
        #expect(file.entries.last?.digest == nil)
        #expect(file.entries.last?.reader == Reader(id: "cam-1", scope: .read))
        #expect(try TokensFile.parse(#"{"tokens":[]}"#.utf8).entries.isEmpty)
    }

    @Test("A written file is read with the same content")
    func roundTrip() throws {
        let file = try TokensFile.parse(Self.full.utf8)
        #expect(try TokensFile.parse(file.json.text.utf8) == file)
    }

    private static func with(_ members: String) -> String { #"{"tokens":[{\#(members)}]}"# }

    @Test(
        "Invalid files are refused with the path of the fault and without the digest",
        arguments: [
            ("{}", "tokens"), ("[]", "(body)"), (#"{"tokens":{}}"#, "tokens"), (#"{"tokens":[7]}"#, "tokens[0]"),
            (#"{"tokens":[],"more":1}"#, "more"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)","x":1"#), "tokens[0].x"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)","sharedCache":1"#), "tokens[0].sharedCache"),
            (with(#""scope":"read","sha256":"\#(digest)""#), "tokens[0].id"),
            (with(#""id":"","scope":"read","sha256":"\#(digest)""#), "tokens[0].id"),
            (with(#""id":"a b","scope":"read","sha256":"\#(digest)""#), "tokens[0].id"),
            (with(#""id":"é","scope":"read","sha256":"\#(digest)""#), "tokens[0].id"),
            (
                with(#""id":"\#(String(repeating: "a", count: 65))","scope":"read","sha256":"\#(digest)""#),
                "tokens[0].id"
            ),
            (with(#""id":"a","sha256":"\#(digest)""#), "tokens[0].scope"),
            (with(#""id":"a","scope":"owner","sha256":"\#(digest)""#), "tokens[0].scope"),
            (with(#""id":"a","scope":"read""#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","subjects":[]"#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest.dropLast())""#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)0""#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest.dropLast())g""#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","sha256":"+\#(digest.dropFirst())""#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","sha256":null"#), "tokens[0].sha256"),
            (with(#""id":"a","scope":"read","subjects":["cam"]"#), "tokens[0].subjects[0]"),
            (with(#""id":"a","scope":"read","subjects":["CN=x","CN="]"#), "tokens[0].subjects[1]"),
            (with(#""id":"a","scope":"read","subjects":["CN=x","CN=x"]"#), "tokens[0].subjects"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)","prefixes":["o/"]"#), "tokens[0].prefixes[0]"),
            (
                with(#""id":"a","scope":"read","sha256":"\#(digest)","prefixes":["/o/../"]"#),
                "tokens[0].prefixes[0]"
            ),
            (
                with(#""id":"a","scope":"read","sha256":"\#(digest)","prefixes":["/a","/%zz"]"#),
                "tokens[0].prefixes[1]"
            ),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)","origins":"media""#), "tokens[0].origins"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)","expiresAt":"soon""#), "tokens[0].expiresAt"),
            (with(#""id":"a","scope":"read","sha256":"\#(digest)","expiresAt":1"#), "tokens[0].expiresAt"),
            (
                with(#""id":"a","scope":"read","sha256":"\#(digest)","maxBytesPerSecond":0"#),
                "tokens[0].maxBytesPerSecond"
            ),
            (
                with(#""id":"a","scope":"read","sha256":"\#(digest)","maxBytesPerSecond":-1"#),
                "tokens[0].maxBytesPerSecond"
            ),
            (
                #"{"tokens":[{"id":"a","scope":"read","subjects":["CN=x"]},"#
                    + #"{"id":"a","scope":"read","sha256":"\#(digest)"}]}"#,
                "tokens[1].id"
            ),
            (
                #"{"tokens":[{"id":"a","scope":"read","sha256":"\#(digest)"},"#
                    + #"{"id":"b","scope":"read","sha256":"\#(digest.uppercased())"}]}"#, "tokens[1].sha256"
            ),
            (
                #"{"tokens":[{"id":"a","scope":"read","subjects":["DNS:x"]},"#
                    + #"{"id":"b","scope":"read","subjects":["DNS:X"]}]}"#,
                "tokens[1].subjects"
            ),
        ] as [(String, String)])
    func invalid(_ text: String, _ path: String) {
        let error = #expect(throws: CacheError.self) { try TokensFile.parse(text.utf8) }
        #expect(error?.code == .invalidField(path))
        let message = error.map { "\($0)" + String(reflecting: $0) }?.lowercased() ?? Self.digest
        #expect(!message.contains(Self.digest.dropFirst(2).dropLast(2)))
    }

    @Test("Text that is not strict JSON is refused", arguments: ["", "{", #"{"tokens":[],"tokens":[]}"#, "\u{FEFF}{}"])
    func syntax(_ text: String) {
        let error = #expect(throws: CacheError.self) { try TokensFile.parse(text.utf8) }
        #expect(error?.code == .malformedRequest)
        #expect(error?.message.hasPrefix("The tokens file is not JSON") ?? false)
    }

    @Test("10,000 tokens are read, one more is refused")
    func limit() throws {
        func file(_ count: Int) -> String {
            let entries = (0..<count).map { #"{"id":"t\#($0)","scope":"read","subjects":["CN=\#($0)"]}"# }
            return #"{"tokens":[\#(entries.joined(separator: ","))]}"#
        }
        #expect(try TokensFile.parse(file(10_000).utf8).entries.count == 10_000)
        let error = #expect(throws: CacheError.self) { try TokensFile.parse(file(10_001).utf8) }
        #expect(error?.code == .invalidField("tokens"))
    }

    @Test("Random changes of a file never trap")
    func mutations() {
        let (_, seed) = SeededRandom.announced()
        var accepted = 0
        for number in 0..<5000 as Range<UInt64> {
            let bytes = Mutation.input(number, seed: seed, from: [Array(Self.full.utf8)])
            if (try? TokensFile.parse(bytes)) != nil { accepted += 1 }
        }
        #expect(accepted < 5000)
    }
}

struct TokenDigestTests {
    @Test("A digest is SHA-256, and its digits are read in either case")
    func digits() {
        let digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        #expect(TokenDigest(of: "test").hexDigits == digits)
        #expect(TokenDigest(hexDigits: digits) == TokenDigest(of: "test"))
        #expect(TokenDigest(hexDigits: digits.uppercased()) == TokenDigest(of: "test"))
        #expect(TokenDigest(of: "test") != TokenDigest(of: "tesu"))
    }

    @Test("A difference in any byte makes two digests unequal")
    func differences() throws {
        let digits = Array(TokenDigest(of: "a").hexDigits)
        for index in digits.indices {
            var changed = digits
            changed[index] = digits[index] == "0" ? "1" : "0"
            let other = try #require(TokenDigest(hexDigits: String(changed)))
            #expect(other != TokenDigest(of: "a"))
        }
    }
}
