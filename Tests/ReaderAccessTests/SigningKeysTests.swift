import CacheCore
import Cryptography
import TestKeys
import Testing
import WebTokens

@testable import ReaderAccess

struct SigningKeysTests {
    private func file(_ name: String, _ content: String) -> SigningKeys.File {
        SigningKeys.File(name: name, content: Array(content.utf8))
    }

    private let text = String(repeating: "k", count: 32)

    private func bytes(_ key: SymmetricKey?) -> [UInt8]? { key?.withUnsafeBytes { Array($0) } }

    @Test("The kid is the file name without its last extension; hidden files are skipped")
    func names() throws {
        let keys = try SigningKeys(
            files: [
                file("b.key", text), file("a", text), file("2026.11.key", text), file(".swp", "x"), file("..data", ""),
            ])
        #expect(keys.ids == ["2026.11", "a", "b"])
        #expect(SigningKeys().ids.isEmpty)
    }

    @Test("A text key loses white space at its end, a binary key stays as it is")
    func content() throws {
        let binary = Array(repeating: UInt8(0x0A), count: 16) + [0xFF] + Array(repeating: 0x0A, count: 16)
        let keys = try SigningKeys(
            files: [file("a", text + " \r\n\n"), .init(name: "b", content: binary), file("c", "\n" + text)])
        #expect(bytes(keys.secret("a")) == Array(text.utf8))
        #expect(bytes(keys.secret("b")) == binary)
        #expect(bytes(keys.secret("c")) == [0x0A] + Array(text.utf8))
    }

    @Test("Short keys, bad names, equal names and other PEM are refused with the file name and without the content")
    func refusals() throws {
        let p384 = TestKey.ec("P-384")
        let cases: [([SigningKeys.File], String)] = [
            ([file("a", String(text.dropLast()))], "a"), ([file("a", String(text.dropLast()) + "\n")], "a"),
            ([file("a", "")], "a"), ([file("a b.key", text)], "a b.key"), ([file("\u{E9}.key", text)], "\u{E9}.key"),
            ([file("a.key", text), file("a.pem", text)], "a.pem"), ([file("a.pem", text)], "a.pem"),
            ([file("a.pem", p384.pkcs8)], "a.pem"),
            ([file("a.pem", p384.publicPEM)], "a.pem"),
            ([file("a", String(repeating: "k", count: 20_000))], "a"),
            ([file(String(repeating: "a", count: 65), text)], String(repeating: "a", count: 65)),
        ]
        for (files, name) in cases {
            let error = #expect(throws: CacheError.self) { try SigningKeys(files: files) }
            #expect(error?.code == .invalidField(name))
            #expect(error.map { !$0.message.contains("kkkk") && !$0.message.contains("MI") } ?? false)
        }
        #expect(throws: CacheError.self) { try SigningKeys(files: (0..<257).map { file("k\($0)", text) }) }
    }

    @Test("Without a chosen kid the last name that fits the form signs")
    func preference() throws {
        let pem = TestKey.ec("P-256")
        let keys = try SigningKeys(
            files: [
                file("a", text), file("b", text), file("c.pem", pem.pkcs8),
                file("d.pem", pem.publicPEM),
            ])
        #expect(keys.preferredID(secretsOnly: true) == "b")
        #expect(keys.preferredID(secretsOnly: false) == "c")
        #expect(keys.secret("c") == nil)
        #expect(keys.signingKey("d") == nil)
        #expect(keys.verificationKeys.keys.map(\.id) == ["a", "b", "c", "d"])
    }
}
