import CacheAPI
import CacheCore
import CacheTestKit
import Foundation
import Logging
import ReaderAccess
import Synchronization
import Testing
import WebTokens

@testable import LarderServer

/// Tokens, key sets and signing keys from files and URLs.
@Suite(.timeLimit(.minutes(5))) struct ReaderSourcesTests {
    private let directory: TemporaryDirectory
    private let now = Timestamp(seconds: 1_780_000_000)

    init() throws { directory = try TemporaryDirectory() }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: directory.path(name)), options: .atomic)
    }

    private func tokens(_ names: [String]) throws {
        let entries = names.map { #"{"id":"\#($0)","scope":"read","sha256":"\#(TokenDigest(of: $0).hexDigits)"}"# }
        try write(#"{"tokens":[\#(entries.joined(separator: ","))]}"#, to: "tokens.json")
    }

    private let clock = ManualClock()

    /// Lets the sources notice a change of their files, and the time pass until it is read.
    private func refresh(_ sources: ReaderSources) async {
        await sources.refreshFiles()
        clock.advance(by: .seconds(1))
        await sources.refreshFiles()
    }

    private func sources(
        _ settings: AccessSettings, record: Record = Record(),
        download: @escaping @Sendable (String) async throws(CacheError) -> [UInt8] = { _ in [] }
    ) throws -> ReaderSources {
        try ReaderSources(
            settings, clock: clock, wallClock: ManualWallClock(now),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            record: .init(
                load: { (name) async throws(CacheError) in
                    name == "issued tokens" ? record.text.withLock { $0 } : nil
                },
                save: { (text, name) async throws(CacheError) in
                    guard name == "issued tokens" else { return }
                    if record.isBroken.withLock({ $0 }) { throw CacheError(.storageFull, "The disk is full.") }
                    record.text.withLock { $0 = text }
                }),
            download: download)
    }

    /// A record of tokens in memory.
    private final class Record: Sendable {
        let text = Mutex<String?>(nil)
        let isBroken = Mutex(false)
    }

    private func isKnown(_ token: String, _ rules: AccessRules) -> Bool {
        rules.directory.reader(ofBearer: token, at: now).reader != nil
    }

    @Test("A changed tokens file is in force after a second without a further change")
    func aChangedTokensFile() async throws {
        var settings = AccessSettings()
        settings.tokensFile = directory.path("tokens.json")
        settings.token = MaskedSecret("boss")
        try tokens(["a"])
        let sources = try sources(settings)
        let rules = sources.rules(settings)
        let live = LiveAPISettings(.init(access: rules, cors: CORSRules()))
        sources.attach(live)
        #expect(isKnown("a", rules) && isKnown("boss", rules) && !isKnown("b", rules))
        await refresh(sources)
        #expect(live.changes == 0)

        try tokens(["b"])
        await sources.refreshFiles()
        #expect(isKnown("a", rules) && !isKnown("b", rules))
        await refresh(sources)
        #expect(!isKnown("a", rules) && isKnown("b", rules) && isKnown("boss", rules))
        #expect(live.changes == 1)

        try write("{", to: "tokens.json")
        await refresh(sources)
        #expect(isKnown("b", rules), "the last valid file stays in force")
        #expect(live.changes == 1)

        try tokens([])
        await refresh(sources)
        #expect(!isKnown("b", rules))
        #expect(!rules.isOpen && !sources.rules(settings).isOpen, "an empty file must not open the service")
    }

    @Test("A token that was removed while the service was stopped is known as revoked")
    func aTokenRemovedWhileStopped() async throws {
        var settings = AccessSettings()
        settings.tokensFile = directory.path("tokens.json")
        settings.readToken = MaskedSecret("old")
        try tokens(["a", "b"])
        let record = Record()
        let first = try sources(settings, record: record)
        await first.recall()
        // The failed attempt is repeated.
        record.isBroken.withLock { $0 = true }
        try tokens(["a", "b", "c"])
        await refresh(first)
        await first.saveTokens()
        record.isBroken.withLock { $0 = false }
        await first.saveTokens()

        settings.readToken = MaskedSecret("new")
        try tokens(["b"])
        let second = try sources(settings, record: record)
        await second.recall()
        let directory = second.rules(settings).directory
        for token in ["a", "c", "old"] { #expect(directory.reader(ofBearer: token, at: now) == .revoked, "\(token)") }
        for token in ["b", "new"] { #expect(directory.reader(ofBearer: token, at: now).reader != nil, "\(token)") }
        #expect(directory.reader(ofBearer: "never", at: now) == .unknown)
        let text = try #require(record.text.withLock { $0 })
        #expect(!text.contains("old") && text.split(separator: "\n").count == 5)
    }

    @Test("Signing keys are those of the directory")
    func signingKeysOfTheDirectory() async throws {
        let keys = directory.path("keys")
        try FileManager.default.createDirectory(atPath: keys, withIntermediateDirectories: false)
        try write("0123456789abcdef0123456789abcdef\n", to: "keys/one.key")
        try write("hidden", to: "keys/.hidden")
        var settings = AccessSettings()
        settings.signing.keysDirectory = keys
        let sources = try sources(settings)
        let signatures = try #require(sources.rules(settings).signatures)
        #expect(signatures.keys.ids == ["one"])
        try write("fedcba9876543210fedcba9876543210\n", to: "keys/two.key")
        try FileManager.default.removeItem(atPath: keys + "/one.key")
        await refresh(sources)
        #expect(signatures.keys.ids == ["two"])
        try write("short", to: "keys/three.key")
        await refresh(sources)
        #expect(signatures.keys.ids == ["two"])
        #expect(sources.rules(AccessSettings()).signatures == nil)
    }

    @Test("A broken key set delays neither tokens nor signing keys, in checks and in reloads")
    func eachFileStandsAlone() async throws {
        let keys = directory.path("keys")
        try FileManager.default.createDirectory(atPath: keys, withIntermediateDirectories: false)
        try write("0123456789abcdef0123456789abcdef\n", to: "keys/one.key")
        try write("fedcba9876543210fedcba9876543210\n", to: "keys/two.key")
        try write(#"{"keys":[]}"#, to: "keys.json")
        try tokens(["a", "b", "c"])
        var settings = AccessSettings()
        settings.tokensFile = directory.path("tokens.json")
        settings.signing.keysDirectory = keys
        settings.jwt.keysFile = directory.path("keys.json")
        let sources = try sources(settings)
        let rules = sources.rules(settings)
        try write(#"{"keys": [broken"#, to: "keys.json")
        await refresh(sources)

        try FileManager.default.removeItem(atPath: keys + "/one.key")
        try tokens(["b", "c"])
        await refresh(sources)
        #expect(!isKnown("a", rules) && isKnown("b", rules))
        #expect(rules.signatures?.keys.ids == ["two"])

        try tokens(["c"])
        try await sources.prepare(settings)()
        #expect(!isKnown("b", rules) && isKnown("c", rules))
        var other = settings
        other.jwt.keysFile = directory.path("missing.json")
        await #expect(throws: CacheError.self) { try await sources.prepare(other) }
    }

    @Test("A key set that cannot be read is requested again after 1, 2, 4 and more seconds, up to a minute")
    func aMissingKeySetIsRequestedAgain() async throws {
        let calls = Mutex<[Duration]>([])
        let isDown = Mutex(true)
        var settings = AccessSettings()
        settings.jwt.keysURL = "https://login.example/keys?secret"
        let uptime = clock.stopwatch()
        let sources = try sources(settings) { (_) throws(CacheError) in
            calls.withLock { $0.append(uptime()) }
            if isDown.withLock({ $0 }) { throw CacheError(.upstreamUnreachable(), "No.") }
            return Array(#"{"keys":[{"kty":"oct","kid":"k","alg":"HS256","k":"AAAA"}]}"#.utf8)
        }
        let directory = sources.rules(settings).directory
        for _ in 0..<200 {
            await sources.refreshKeySet()
            clock.advance(by: .seconds(1))
        }
        #expect(calls.withLock { $0.map(\.components.seconds) } == [0, 1, 3, 7, 15, 31, 63, 123, 183])
        #expect(directory.missingKeySet == settings.jwt.keysURL)

        isDown.withLock { $0 = false }
        for _ in 0..<60 {
            await sources.refreshKeySet()
            clock.advance(by: .seconds(1))
        }
        #expect(calls.withLock { $0.count } == 10)
        #expect(directory.missingKeySet == nil)
    }

    @Test("An unusable file prevents the start, and its setting is named")
    func unusableFilesAreNamed() throws {
        try write("secret-that-is-no-json", to: "bad.json")
        let bad = directory.path("bad.json")
        let faults: [(WritableKeyPath<AccessSettings, String?>, String)] = [
            (\.tokensFile, "access.tokensFile"), (\.jwt.keysFile, "access.jwt.jwksFile"),
            (\.signing.keysDirectory, "access.signing.keysDirectory"),
        ]
        for (path, key) in faults {
            for file in [bad, directory.path("missing")] {
                var settings = AccessSettings()
                settings[keyPath: path] = file
                do {
                    _ = try sources(settings)
                    Issue.record("\(key) accepts \(file)")
                } catch let error as CacheError {
                    #expect(error.code == .invalidField(key))
                    #expect(!error.message.contains("secret-that"))
                }
            }
        }
    }

    @Test("The key set is downloaded at the start, and once for an unknown key; a failure keeps the old keys")
    func theKeySetIsDownloaded() async throws {
        let secret = Array("0123456789abcdef0123456789abcdef".utf8)
        let key = try SigningKey(secret: secret, algorithm: .hs256)
        let document = #"{"keys":[{"kty":"oct","kid":"k","alg":"HS256","k":"\#(Base64URL.encode(secret))"}]}"#
        let calls = Mutex<[String]>([])
        let fails = Mutex(false)
        var settings = AccessSettings()
        settings.jwt.keysURL = "https://login.example/keys"
        settings.jwt.algorithms = [.hs256]
        let sources = try sources(settings) { (url) throws(CacheError) in
            calls.withLock { $0.append(url) }
            if fails.withLock({ $0 }) { throw CacheError(.upstreamUnreachable(), "No.") }
            return Array(document.utf8)
        }
        let rules = sources.rules(settings)
        func token(_ kid: String) throws -> String {
            try JSONWebToken.sign(
                ["sub": "s", "scope": "read", "exp": .integer(now.seconds + 60)], header: [.init("kid", .string(kid))],
                with: key)
        }
        #expect(!isKnown(try token("k"), rules))
        await sources.refreshKeySet()
        #expect(isKnown(try token("k"), rules))
        #expect(calls.withLock { $0 } == ["https://login.example/keys"])
        await sources.refreshKeySet()
        #expect(calls.withLock { $0.count } == 1)
        fails.withLock { $0 = true }
        #expect(!isKnown(try token("other"), rules))
        await sources.refreshKeySet()
        #expect(!isKnown(try token("other"), rules))
        await sources.refreshKeySet()
        #expect(calls.withLock { $0.count } <= 2, "one download per minute for unknown keys")
        #expect(isKnown(try token("k"), rules))
    }

    @Test("Settings of readers that exclude or need each other are refused")
    func settingsThatBelongTogether() throws {
        func fault(_ flags: [(String, String)]) -> String? {
            do {
                _ = try LarderSettings(flags: flags.map { (name: $0.0, text: $0.1) })
                return nil
            } catch {
                return error.key
            }
        }
        #expect(fault([("listen.tls.clientCAFile", "ca.pem")]) == "listen.tls.clientCAFile")
        #expect(fault([("access.jwt.issuer", "i")]) == "access.jwt.issuer")
        #expect(fault([("access.jwt.audience", "a")]) == "access.jwt.audience")
        #expect(
            fault([("access.jwt.jwksFile", "a"), ("access.jwt.jwksURL", "https://a.example")]) == "access.jwt.jwksURL")
        #expect(fault([("access.jwt.jwksFile", "a"), ("access.jwt.algorithms", "none")]) == "access.jwt.algorithms")
        #expect(fault([("access.jwt.jwksFile", "a"), ("access.jwt.audience", "x")]) == nil)
    }

    @Test(
        "Any source of readers permits a public listener",
        arguments: [
            ("access.tokensFile", "tokens.json"), ("access.jwt.jwksURL", "https://login.example/keys"),
        ])
    func readersPermitAPublicListener(key: String, value: String) throws {
        let open = try LarderSettings(flags: [(name: "listen.address", text: "0.0.0.0:8080")])
        #expect(throws: SettingsError.self) { try open.checkExposure() }
        let closed = try LarderSettings(flags: [
            (name: "listen.address", text: "0.0.0.0:8080"), (name: key, text: value),
        ])
        try closed.checkExposure()
    }
}
