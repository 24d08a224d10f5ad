import ArgumentParser
import CacheAPI
import CacheCore
import CacheTestKit
import Foundation
import ReaderAccess
import Testing

@testable import LarderServer

@Suite struct TokenCommandTests {
    private let now = Timestamp(seconds: 1_780_000_000)

    @Test("An entry has the digest of the token, and all options")
    func anEntryHasTheDigest() throws {
        let command = try TokenNewCommand.parse([
            "--id", "player-1", "--scope", "read", "--origin", "media", "--origin", "films", "--prefix", "/o/media/a/",
            "--expires", "30d", "--max-bytes-per-second", "1000", "--shared-cache",
        ])
        let entry = try command.entry("s3cret", at: now)
        let reader = try #require(TokensFile(["tokens": [entry]]).entries.first?.reader)
        #expect(
            reader
                == Reader(
                    id: "player-1", scope: .read, origins: ["media", "films"], prefixes: ["/o/media/a/"],
                    expiresAt: now + .seconds(30 * 86400), maxBytesPerSecond: 1000, isSharedCache: true))
        #expect(entry.text.contains(TokenDigest(of: "s3cret").hexDigits) && !entry.text.contains("s3cret"))
    }

    @Test("An entry can permit signed URLs only, for a limited time")
    func anEntryForSigning() throws {
        let command = try TokenNewCommand.parse(["--id", "x", "--scope", "sign", "--max-signature", "12h"])
        let entry = try command.entry("s3cret", at: now)
        let reader = try #require(TokensFile(["tokens": [entry]]).entries.first?.reader)
        #expect(reader == Reader(id: "x", scope: .sign, maxSignatureSeconds: 43_200))
    }

    @Test("An entry for a certificate has no digest")
    func anEntryForACertificate() throws {
        let command = try TokenNewCommand.parse(["--id", "x", "--scope", "write", "--subject", "CN=x"])
        let entry = try command.entry("s3cret", at: now)
        #expect(entry == ["id": "x", "scope": "write", "subjects": ["CN=x"]])
    }

    @Test(
        "Invalid options are refused",
        arguments: [
            ["--id", "a b", "--scope", "read"], ["--id", "a", "--scope", "read", "--prefix", "o"],
            ["--id", "a", "--scope", "read", "--expires", "soon"], ["--id", "a", "--scope", "read", "--subject", "x"],
            ["--id", "a", "--scope", "read", "--max-bytes-per-second", "0"],
            ["--id", "a", "--scope", "sign", "--max-signature", "0s"],
        ])
    func invalidOptionsAreRefused(arguments: [String]) throws {
        let command = try TokenNewCommand.parse(arguments)
        #expect(throws: (any Error).self) { try command.entry("t", at: now) }
    }

    @Test("Entries are added to the file, which keeps its permissions")
    func entriesAreAdded() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("tokens.json")
        func mode() throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        func entry(_ id: String) throws -> JSON {
            try TokenNewCommand.parse(["--id", id, "--scope", "read"]).entry(id, at: now)
        }
        try TokenNewCommand.add(entry("a"), to: path)
        #expect(try mode() == 0o600)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        try TokenNewCommand.add(entry("b"), to: path)
        #expect(try mode() == 0o640)
        let text = try Data(contentsOf: URL(filePath: path))
        #expect(try TokensFile.parse(text).entries.map(\.reader.id) == ["a", "b"])
        #expect(throws: (any Error).self) { try TokenNewCommand.add(entry("a"), to: path) }
        #expect(try Data(contentsOf: URL(filePath: path)) == text)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path("")) == ["tokens.json"])
    }

    @Test("Tokens are random and can be put into a header field")
    func tokensAreRandom() {
        var generator = SystemRandomNumberGenerator()
        let tokens = (0..<100).map { _ in TokenNewCommand.token(&generator) }
        #expect(Set(tokens).count == 100)
        #expect(tokens.allSatisfy { $0.utf8.count == 43 })
    }

    @Test("The order for a signature has all options")
    func theOrderForASignature() throws {
        let command = try SignCommand.parse([
            "/o/media/list.m3u8", "--scope", "prefix", "--form", "path", "--expires", "12h", "--kid", "k",
        ])
        let body = try command.body
        let order = try SignatureRequest(body, at: now)
        #expect(
            order
                == SignatureRequest(
                    path: "/o/media/list.m3u8", scope: .prefix, form: .path, expiresAt: now + .seconds(43200),
                    keyID: "k"))
        #expect(throws: (any Error).self) { try SignCommand.parse(["/o/a/b", "--expires", "never"]) }
    }
}
