import CacheAPI
import CacheCore
import Foundation
import Logging
import NIOPosix
import ReaderAccess
import ServiceLifecycle
import Synchronization
import WebTokens

/// Service that reads the tokens file, the JWK set and the signing keys, and reads them again when they have changed.
///
/// The files are checked every `checkInterval`. A file that becomes unusable is logged, and its last valid content stays
/// in force. After each change, prepared responses are authorized again (``LiveAPISettings/changes``).
final class ReaderSources: Service {
    /// The last read content and its settings.
    private struct State {
        var settings: AccessSettings
        var stamps: [String: FileStamp]
        /// The uptime of the last successful or failed download of the JWK set; nil: none.
        var downloadedAt: Duration?
    }

    /// The parsed content of all files.
    struct Content: Sendable {
        var file: TokensFile?
        var keySet: JSONWebKeySet?
        var signingKeys: SigningKeys?
        /// The stamps of the files before they were read.
        fileprivate var stamps: [String: FileStamp] = [:]
    }

    static let checkInterval = Duration.seconds(2)
    /// The time after which the JWK set is downloaded again.
    private static let downloadInterval = Duration.seconds(3600)
    /// The time after a failed download.
    private static let retryInterval = Duration.seconds(60)

    private let directory = ReaderDirectory()
    private let signatures = ContentSignatures()
    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    private let logger: Logger
    /// Returns the body of a URL.
    private let download: @Sendable (String) async throws(CacheError) -> [UInt8]
    private let state: Mutex<State>
    /// The settings of the HTTP server; set before the service runs.
    private let live = Mutex<LiveAPISettings?>(nil)

    /// Reads the files. Throws `.invalidField` with the setting of an unusable one.
    init(
        _ settings: AccessSettings, clock: any Clock<Duration>, logger: Logger,
        download: @escaping @Sendable (String) async throws(CacheError) -> [UInt8]
    ) throws(CacheError) {
        self.clock = clock
        uptime = clock.stopwatch()
        self.logger = logger
        self.download = download
        let content = try Self.read(settings)
        state = Mutex(State(settings: settings, stamps: content.stamps))
        apply(content, settings)
    }

    /// The access rules of the settings. All rules share the directory and the keys of this object.
    func rules(_ settings: AccessSettings) -> AccessRules {
        AccessRules(
            directory, signatures: settings.signing.keysDirectory == nil ? nil : signatures,
            isOpen: !settings.hasReaders, allowUnauthenticated: settings.allowUnauthenticated)
    }

    /// Sets the settings whose derived results become invalid with each change.
    func attach(_ live: LiveAPISettings) { self.live.withLock { $0 = live } }

    // MARK: Changes

    /// Reads the files of new settings. Returns the function that puts them in force. Throws as ``init``.
    func prepare(_ settings: AccessSettings) async throws(CacheError) -> @Sendable () -> Void {
        let read = try? await NIOThreadPool.singleton.runIfActive {
            Result { () throws(CacheError) in try Self.read(settings) }
        }
        guard let read else { throw CacheError(.shuttingDown, "The service is shutting down.") }
        let content = try read.get()
        return { [self] in
            state.withLock { state in
                if settings.jwt != state.settings.jwt { state.downloadedAt = nil }
                state.settings = settings
                state.stamps = content.stamps
            }
            apply(content, settings)
        }
    }

    /// Checks the files and the JWK set every `checkInterval` until graceful shutdown.
    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            repeat {
                await refreshFiles()
                await refreshKeySet()
            } while (try? await clock.sleep(for: Self.checkInterval)) != nil  // fails only when cancelled
        }
    }

    /// Reads the files again if one has changed.
    func refreshFiles() async {
        let (settings, known) = state.withLock { ($0.settings, $0.stamps) }
        let read = try? await NIOThreadPool.singleton.runIfActive { () -> Result<Content, CacheError>? in
            let stamps = Self.stamps(of: settings)
            guard stamps != known else { return nil }
            return Result { () throws(CacheError) in try Self.read(settings) }
        }
        guard let result = read else { return }  // unchanged, or shutting down
        switch result {
        case .success(let content):
            let isCurrent = state.withLock { state in
                guard state.settings == settings else { return false }
                state.stamps = content.stamps
                return true
            }
            guard isCurrent else { return }  // a reload has read the files meanwhile
            apply(content, settings)
            invalidate()
            logger.notice("tokens and keys read again")
        case .failure(let error):
            let isNew = state.withLock { state in
                let stamps = Self.stamps(of: settings)
                defer { state.stamps = stamps }
                return state.stamps != stamps
            }
            guard isNew else { return }
            logger.error(
                "tokens and keys not read again; the last valid ones stay in force",
                metadata: ["key": "\(error.settingKey)", "error": "\(error.message)"])
        }
    }

    /// Downloads the JWK set if it is due: at the start, every hour, a minute after a failure, and for a token with an
    /// unknown key at most once a minute. A failure keeps the old keys.
    func refreshKeySet() async {
        let now = uptime()
        let (url, last) = state.withLock { ($0.settings.jwt.keysURL, $0.downloadedAt) }
        guard let url else { return }
        let isAsked = directory.takeKeyRequest(at: now)
        guard isAsked || last.map({ now - $0 >= Self.downloadInterval }) ?? true else { return }
        do throws(CacheError) {
            let keys = try JSONWebKeySet.parse(try await download(url))
            state.withLock { $0.downloadedAt = now }
            directory.update(keys: keys)
            invalidate()
            logger.info("key set read", metadata: ["keys": "\(keys.keys.count)", "skipped": "\(keys.skipped)"])
        } catch {
            // The next attempt is due a minute later.
            state.withLock { $0.downloadedAt = now - Self.downloadInterval + Self.retryInterval }
            logger.warning("key set not read; the old keys stay in force", metadata: ["error": "\(error.message)"])
        }
    }

    private func apply(_ content: Content, _ settings: AccessSettings) {
        directory.update(adminToken: settings.token?.exposed, readToken: settings.readToken?.exposed)
        directory.update(file: content.file)
        let jwt = settings.jwt
        directory.update(
            rules: jwt.isEnabled
                ? JWTRules(
                    issuer: jwt.issuer, audience: jwt.audience, algorithms: Set(jwt.algorithms),
                    scopeClaim: jwt.scopeClaim) : nil)
        if let keys = content.keySet { directory.update(keys: keys) }
        signatures.update(rules: ContentSignatures.Rules(grace: settings.signing.grace, audience: jwt.audience))
        signatures.update(keys: content.signingKeys ?? SigningKeys())
    }

    /// Makes results that earlier rules have authorized invalid.
    private func invalidate() { live.withLock { $0 }?.replace { $0 } }

    // MARK: Files

    /// Reads and parses all files. Blocks its thread.
    private static func read(_ settings: AccessSettings) throws(CacheError) -> Content {
        // The stamps are older than the content: a change during the reading will be noticed.
        var content = Content(stamps: stamps(of: settings))
        if let path = settings.tokensFile {
            content.file = try parsed(path, "access.tokensFile") { (bytes) throws(CacheError) in
                try TokensFile.parse(bytes)
            }
        }
        if let path = settings.jwt.keysFile {
            content.keySet = try parsed(path, "access.jwt.jwksFile") { (bytes) throws(CacheError) in
                try JSONWebKeySet.parse(bytes)
            }
        }
        if let path = settings.signing.keysDirectory {
            let key = "access.signing.keysDirectory"
            var files: [SigningKeys.File] = []
            for name in try names(in: path, key) {
                files.append(SigningKeys.File(name: name, content: try bytes(of: path + "/" + name, key)))
            }
            do {
                content.signingKeys = try SigningKeys(files: files)
            } catch {
                throw .invalid(key, "\(error.settingKey): \(error.message)")
            }
        }
        return content
    }

    /// The parsed content of a file.
    private static func parsed<Value>(
        _ path: String, _ key: String, _ parse: ([UInt8]) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        do {
            return try parse(try bytes(of: path, key))
        } catch {
            // The message of the parser names the member, and no secret.
            guard case .invalidField(let member) = error.code, member != key else { throw .invalid(key, error.message) }
            throw .invalid(key, "\(member): \(error.message)")
        }
    }

    private static func bytes(of path: String, _ key: String) throws(CacheError) -> [UInt8] {
        do {
            return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw .invalid(key, "\"\(path)\" cannot be read; check its path and permissions.")
        }
    }

    /// The names of the files in a directory, without hidden ones and directories.
    private static func names(in path: String, _ key: String) throws(CacheError) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: path).filter { name in
                var isDirectory: ObjCBool = false
                return !name.hasPrefix(".")
                    && FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
                    && !isDirectory.boolValue
            }.sorted()
        } catch {
            throw .invalid(key, "\"\(path)\" cannot be read; check its path and permissions.")
        }
    }

    /// The stamps of all files that exist. Blocks its thread.
    private static func stamps(of settings: AccessSettings) -> [String: FileStamp] {
        var paths = [settings.tokensFile, settings.jwt.keysFile].compactMap(\.self)
        if let directory = settings.signing.keysDirectory {
            paths += ((try? names(in: directory, "")) ?? []).map { directory + "/" + $0 }
        }
        return paths.reduce(into: [:]) { $0[$1] = FileStamp(path: $1) }
    }
}

extension CacheError {
    /// The setting or member of `.invalidField`; empty for other errors.
    fileprivate var settingKey: String { if case .invalidField(let key) = code { key } else { "" } }
}
