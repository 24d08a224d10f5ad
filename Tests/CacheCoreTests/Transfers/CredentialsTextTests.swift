import CacheCore
import Testing

@Suite struct CredentialsTextTests {
    static func parse(_ text: String) throws -> [HeaderList.Field] {
        try CredentialsText.parse(Array(text.utf8)).fields
    }

    @Test func fieldsAreReadInTheirOrderAndRemarksPassedOver() throws {
        let fields = try Self.parse(
            "# for the shelf\n\nAuthorization: Bearer a:b==\r\n  X-Key:\tyes \n \n")

        #expect(fields == [.init("Authorization", "Bearer a:b=="), .init("X-Key", "yes")])
    }

    @Test func aLastLineNeedsNoEnd() throws {
        #expect(try Self.parse("Cookie: a=1; b=2") == [.init("Cookie", "a=1; b=2")])
    }

    @Test func aNameMayStandTwice() throws {
        #expect(try Self.parse("X-A: 1\nx-a: 2").map(\.value) == ["1", "2"])
    }

    @Test(arguments: [
        "", "\n\n# nothing\n", "Authorization", "Bearer secret", ": secret", "X Y: secret", "X-Key :secret", "X-Key:",
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

    @Test func bytesThatAreNoTextAreRefused() {
        let bytes = Array("X-Key: ".utf8) + [0xC3, 0x28]

        #expect(throws: CacheError.self) { try CredentialsText.parse(bytes) }
    }

    @Test func theErrorNamesTheLine() {
        let error = #expect(throws: CacheError.self) { try Self.parse("# one\nX-A: 1\nnonsense\n") }

        #expect(error?.message.contains("number 3") == true)
    }
}
