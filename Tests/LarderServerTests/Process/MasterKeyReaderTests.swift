import CacheCore
import CacheTestKit
import Foundation
import Testing

@testable import CacheStore
@testable import LarderServer

/// Master keys of files and of a command.
@Suite struct MasterKeyReaderTests {
    private let directory: TemporaryDirectory
    private static let hex = String(repeating: "0f", count: 32)
    private static let bytes = [UInt8](repeating: 15, count: 32)

    init() throws { directory = try TemporaryDirectory() }

    private func write(_ text: Data, _ name: String, mode: Int = 0o600) throws {
        let path = directory.path("keys") + "/" + name
        try FileManager.default.createDirectory(atPath: directory.path("keys"), withIntermediateDirectories: true)
        #expect(FileManager.default.createFile(atPath: path, contents: text, attributes: [.posixPermissions: mode]))
    }

    private func read(_ change: (inout EncryptionSettings) -> Void = { _ in }, used: [String] = []) throws
        -> MasterKeys.Content
    {
        var settings = EncryptionSettings(keysDirectory: directory.path("keys"))
        change(&settings)
        return try MasterKeyReader(settings: settings).read(used: used)
    }

    @Test("Keys are 32 bytes, hexadecimal digits or Base64; the last one is active")
    func forms() throws {
        try write(Data(Self.bytes), "a.key")
        try write(Data((Self.hex + "\n").utf8), "b")
        try write(Data(Data(Self.bytes).base64EncodedString().utf8), "c")
        try write(Data(TokenNewCommand.newSecret().utf8), "2026.11")
        try write(Data("hidden".utf8), ".x")
        let content = try read()
        #expect(content.keys.map(\.id) == ["2026", "a", "b", "c"] && content.active?.id == "c")
        #expect(try read { $0.activeKey = "a" }.active?.id == "a")
    }

    @Test(
        "An unusable file is an error that names it",
        arguments: [
            ("short", Data(repeating: 1, count: 31), 0o600, "short"),
            ("long", Data(repeating: 1, count: 33), 0o600, "long"),
            ("open", Data(repeating: 1, count: 32), 0o644, "0600"), ("empty", Data(), 0o600, "empty"),
            ("text", Data("correct horse battery staple pas".utf8), 0o600, "text"),
            ("twice.key", Data(repeating: 1, count: 32), 0o600, "twice"),
            ("b d", Data(repeating: 1, count: 32), 0o600, "b d"),
        ])
    func unusable(name: String, content: Data, mode: Int, word: String) throws {
        try write(Data(Self.bytes), "twice")
        try write(content, name, mode: mode)
        let error = #expect(throws: CacheError.self) { try read() }
        #expect(error?.code == .invalidField("encryption.keysDirectory"))
        #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
    }

    @Test("A missing directory and a missing active key are errors")
    func missing() throws {
        #expect(throws: CacheError.self) { try read() }
        try write(Data(Self.bytes), "a")
        let error = #expect(throws: CacheError.self) { try read { $0.activeKey = "z" } }
        #expect(error?.message.contains("\"z\"") == true)
    }

    private func command(_ script: String, _ active: String = "k1", used: [String] = []) throws -> MasterKeys.Content {
        try read(
            { settings in
                settings.keysDirectory = nil
                settings.keyCommand = ["/bin/sh", "-c", script, "key"]
                settings.activeKey = active
            }, used: used)
    }

    @Test("The command gets the identifier and no environment")
    func command() throws {
        let content = try command(
            "[ \"$1\" = gone ] && exit 3; [ -z \"$HOME\" ] && echo \(Self.hex)", used: ["k0", "gone"])
        #expect(content.keys.map(\.id) == ["k1", "k0"] && content.active?.id == "k1")
    }

    @Test(
        "A command that fails is an error without its output",
        arguments: ["exit 7", "echo secret-output", "echo \(hex)\(hex)", "exec yes secret-output", "exec sleep 1000"])
    func failing(script: String) throws {
        let error = #expect(throws: CacheError.self) { try command(script) }
        #expect(error?.code == .invalidField("encryption.keyCommand"))
        #expect(error?.message.contains("k1") == true && error?.message.contains("secret-output") == false)
    }
}
