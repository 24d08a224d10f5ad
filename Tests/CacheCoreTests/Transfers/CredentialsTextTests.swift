import CacheCore
import Testing

@Suite struct CredentialsTextTests {
    static func parse(_ text: String) throws -> [HeaderList.Field] {
        try CredentialsText.parse(Array(text.utf8)).fields
    }

    @Test("Fields are read in order, and comments are skipped")
    func fieldsAreReadInTheirOrderAndRemarksPassedOver() throws {
        let fields = try Self.parse(
            "# a comment\n\nAuthorization: Bearer a:b==\r\n  X-Key:\tyes \n \n")

        #expect(fields == [.init("Authorization", "Bearer a:b=="), .init("X-Key", "yes")])
    }

    @Test("The last line needs no line break")
    func aLastLineNeedsNoEnd() throws {
        #expect(try Self.parse("Cookie: a=1; b=2") == [.init("Cookie", "a=1; b=2")])
    }

    @Test("A field name can occur twice")
    func aNameMayStandTwice() throws {
        #expect(try Self.parse("X-A: 1\nx-a: 2").map(\.value) == ["1", "2"])
    }

    @Test(
        "A malformed credentials file is rejected without repeating its text",
        arguments: [
            "", "\n\n# nothing\n", "Authorization", "Bearer secret", ": secret", "X Y: secret", "X-Key :secret",
            "X-Key:",
            "X-Key: sec\u{0}ret", "X-Key: sec\u{7F}ret", "X-Key: sec\rret", "\u{FEFF}X-Key: secret",
            "X-Key: secret" + String(repeating: "s", count: 8192), "Range: secret", "host: secret",
            "content-length: secret", "CONNECTION: secret", "Proxy-Authorization: secret",
            (0...64).map { "X-\($0): secret" }.joined(separator: "\n"),
            "X-Key: secret\n" + String(repeating: "#", count: 64 << 10),
        ])
    func whatIsNoListOfFieldsIsRefusedAndNeverRepeated(_ text: String) {
        let error = #expect(throws: CacheError.self) { try Self.parse(text) }

        #expect(error?.code == .invalidField("credentialsFile"))
        #expect(error?.message.contains("secret") == false)
    }

    @Test("Invalid UTF-8 is rejected")
    func bytesThatAreNoTextAreRefused() {
        let bytes = Array("X-Key: ".utf8) + [0xC3, 0x28]

        #expect(throws: CacheError.self) { try CredentialsText.parse(bytes) }
    }

    @Test("The error names the line number")
    func theErrorNamesTheLine() {
        let error = #expect(throws: CacheError.self) { try Self.parse("# one\nX-A: 1\nnonsense\n") }

        #expect(error?.message.contains("line 3") == true)
    }
}
