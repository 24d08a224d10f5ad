import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import Foundation
import Logging
import NIOPosix
import ReaderAccess
import ServiceLifecycle
import WebTokens

/// Service that reads the tokens file, the JWK set and the signing keys, and reads them again when they have changed.
///
/// Each of them is checked and applied on its own (``WatchedFile``). One that becomes unusable is logged, and its last
/// valid content stays in force. After each change, prepared responses are authorized again
/// (``LiveAPISettings/changes``).
final class ReaderSources: Service {
    /// A source of tokens or keys: a file or a directory.
    private enum Part: CaseIterable, Sendable {
        case tokens, keySet, signingKeys

        /// The setting that names the file or the directory.
        var key: String {
            switch self {
            case .tokens: "access.tokensFile"
            case .keySet: "access.jwt.jwksFile"
            case .signingKeys: "access.signing.keysDirectory"
            }
        }

        /// The file or the directory; nil: none is configured.
        func path(in settings: AccessSettings) -> String? {
            switch self {
            case .tokens: settings.tokensFile
            case .keySet: settings.jwt.keysFile
            case .signingKeys: settings.signing.keysDirectory
            }
        }
    }

    /// The parsed content of a part; nil: none is configured.
    private enum Content: Sendable {
        case tokens(TokensFile?)
        case keySet(JSONWebKeySet?)
        case signingKeys(SigningKeys)
    }

    /// A part that was read.
    private struct Reading: Sendable {
        let part: Part
        /// The stamps before the content was read, so that a change during the reading will be noticed.
        let stamps: WatchedFile.Stamps
        let content: Result<Content, CacheError>
    }

    /// The last read content and its settings.
    private struct State {
        var settings: AccessSettings
        var files: [Part: WatchedFile] = [:]
        /// The messages of the parts that are unusable now, so that each is logged once.
        var faults: [Part: String] = [:]
        /// The uptime of the next download of the JWK set, and the number of failures since the last successful one.
        var downloadsAt = Duration.zero
        var failures = 0
    }

    /// The place for texts that outlive the process, by name.
    struct Record: Sendable {
        var load: @Sendable (_ name: String) async throws(CacheError) -> String?
        var save: @Sendable (_ text: String, _ name: String) async throws(CacheError) -> Void
    }

    /// The names of the texts: the issued tokens, and the signatures in use.
    private static let (tokens, uses) = ("issued tokens", "signatures in use")

    /// The record of issued tokens that must be saved.
    private struct UnsavedTokens {
        var tokens: IssuedTokens?
        /// Whether the last attempt failed; its error was logged.
        var hasFailed = false
    }

    /// The time without a change after which a file is read.
    private static let settling = Duration.seconds(1)
    /// The time after which the JWK set is downloaded again, and the longest time after failures.
    private static let downloadInterval = Duration.seconds(3600)
    private static let longestRetryInterval = Duration.seconds(60)

    private let directory = ReaderDirectory()
    private let signatures = ContentSignatures()
    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    private let wallClock: any WallClock
    private let logger: Logger
    /// Returns the body of a URL.
    private let download: @Sendable (String) async throws(CacheError) -> [UInt8]
    private let state: OrderedMutex<State>
    /// The settings of the HTTP server; set before the service runs.
    private let live = OrderedMutex<LiveAPISettings?>(.leaf, nil)
    private let record: Record
    private let unsaved = OrderedMutex(.leaf, UnsavedTokens())

    /// Reads the files. Throws `.invalidField` with the setting of an unusable one.
    init(
        _ settings: AccessSettings, clock: any Clock<Duration>, wallClock: any WallClock, logger: Logger,
        record: Record,
        download: @escaping @Sendable (String) async throws(CacheError) -> [UInt8]
    ) throws(CacheError) {
        self.clock = clock
        uptime = clock.stopwatch()
        self.wallClock = wallClock
        self.record = record
        self.logger = logger
        self.download = download
        state = OrderedMutex(.leaf, State(settings: settings))
        let readings = Part.allCases.map { Self.read($0, settings) }
        for reading in readings { _ = try reading.content.get() }
        apply(settings)
        for reading in readings { _ = accept(reading, settings) }
    }

    /// The access rules of the settings. All rules share the directory and the keys of this object.
    func rules(_ settings: AccessSettings) -> AccessRules {
        AccessRules(
            directory, signatures: settings.signing.keysDirectory == nil ? nil : signatures,
            hasNoSources: !settings.hasReaders, allowUnauthenticated: settings.allowUnauthenticated)
    }

    /// Sets the settings whose derived results become invalid with each change, and follows the tokens of the API. Nil: there
    /// are none.
    func attach(_ live: LiveAPISettings, _ tokens: TokenTable? = nil) {
        self.live.withLock { $0 = live }
        tokens?.follow { self.adopt($0) }
    }

    /// Puts the tokens of the API in force. One that cannot be read, of a later version, has no effect.
    private func adopt(_ stored: StoredTokens) {
        var tokens: [APIToken] = []
        for token in stored.tokens.values {
            do throws(CacheError) {
                tokens.append(try APIToken(document: token.document))
            } catch {
                logger.error(
                    "a token of the API cannot be read", metadata: ["token": "\(token.id)", "error": "\(error)"])
            }
        }
        directory.update(api: tokens, version: stored.version)
        live.withLock { $0 }?.replace { $0 }
    }

    // MARK: Records

    /// Reads the records of an earlier process, and saves that of the tokens with the present ones. Call it before the first
    /// request.
    func recall() async {
        do throws(CacheError) {
            signatures.recall(uses: try await record.load(Self.uses) ?? "")
        } catch {
            logger.warning("signatures in use not read", metadata: ["error": "\(error.message)"])
        }
        do throws(CacheError) {
            let text = try await record.load(Self.tokens)
            directory.recall(text.map { IssuedTokens(text: $0) } ?? IssuedTokens())
        } catch {
            logger.warning(
                "revoked tokens not read; they are treated as unknown ones", metadata: ["error": "\(error.message)"])
        }
        await saveTokens()
    }

    /// Saves the record if the tokens have changed. A failure is logged once and the attempt repeated.
    func saveTokens() async {
        let changed = directory.recordTokens(at: wallClock.now())
        let tokens = unsaved.withLock { unsaved in
            unsaved.tokens = changed ?? unsaved.tokens
            return unsaved.tokens
        }
        guard let tokens else { return }
        do throws(CacheError) {
            try await record.save(tokens.text, Self.tokens)
            unsaved.withLock { unsaved in
                if unsaved.tokens == tokens { unsaved.tokens = nil }
                unsaved.hasFailed = false
            }
        } catch {
            let isNew = unsaved.withLock { unsaved in
                defer { unsaved.hasFailed = true }
                return !unsaved.hasFailed
            }
            guard isNew else { return }
            logger.warning("tokens not recorded; retrying", metadata: ["error": "\(error.message)"])
        }
    }

    /// Saves the signatures whose readers may continue, for the next process. Call it before the store is closed.
    func keepUses() async {
        do throws(CacheError) {
            try await record.save(signatures.uses(at: wallClock.now()), Self.uses)
        } catch  where error.code == .shuttingDown {
            // The store is handed over already, with them.
        } catch {
            logger.warning("signatures in use not recorded", metadata: ["error": "\(error.message)"])
        }
    }

    // MARK: Changes

    /// Reads the files of new settings. Returns the function that puts them in force.
    ///
    /// Throws as ``init`` for a file that another setting names now. An unusable file that was named before keeps its
    /// last valid content, so that it does not delay the other changes.
    func prepare(_ settings: AccessSettings) async throws(CacheError) -> @Sendable () -> Void {
        let readings = try? await NIOThreadPool.singleton.runIfActive {
            Part.allCases.map { Self.read($0, settings) }
        }
        guard let readings else { throw CacheError(.shuttingDown, "The service is shutting down.") }
        let running = state.withLock { $0.settings }
        for reading in readings where reading.part.path(in: settings) != reading.part.path(in: running) {
            _ = try reading.content.get()
        }
        return { [self] in
            state.withLock { state in
                if settings.jwt != state.settings.jwt { (state.downloadsAt, state.failures) = (.zero, 0) }
                state.settings = settings
            }
            apply(settings)
            for reading in readings { _ = accept(reading, settings) }
        }
    }

    /// Checks the files and the JWK set until graceful shutdown. A slow download does not delay the files.
    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withTaskGroup(of: Void.self) { group in
                for check in [refreshFilesAndTokens, refreshKeySet] {
                    group.addTask { [clock] in
                        repeat {
                            await check()
                        } while (try? await clock.sleep(for: WatchedFile.checkInterval)) != nil  // fails when cancelled
                    }
                }
            }
        }
        await keepUses()
    }

    /// Reads changed files again, and records their tokens.
    @Sendable private func refreshFilesAndTokens() async {
        await refreshFiles()
        await saveTokens()
    }

    /// Reads each part again that has changed and has settled, or that was unusable.
    @Sendable func refreshFiles() async {
        for part in Part.allCases {
            let settings = state.withLock { $0.settings }
            let reading = try? await NIOThreadPool.singleton.runIfActive { [self] () -> Reading? in
                let stamps = Self.stamps(of: part, settings)
                let isDue = state.withLock { $0.files[part]?.check(stamps, at: uptime()) ?? false }
                guard isDue else { return nil }
                let reading = Self.read(part, settings)
                // Otherwise the content may be one of a write in progress.
                return reading.stamps == stamps && Self.stamps(of: part, settings) == stamps ? reading : nil
            }
            // Nil: unchanged, or shutting down.
            guard let reading = reading ?? nil, accept(reading, settings) else { continue }
            live.withLock { $0 }?.replace { $0 }
            logger.notice("tokens and keys read again", metadata: ["key": "\(part.key)"])
        }
    }

    /// Puts the content of a part in force if it is valid; otherwise logs the error. Returns whether it is in force.
    private func accept(_ reading: Reading, _ settings: AccessSettings) -> Bool {
        let part = reading.part
        let fault: CacheError? = if case .failure(let error) = reading.content { error } else { nil }
        let (isCurrent, isNew) = state.withLock { state in
            // A reload may have read other files meanwhile.
            guard state.settings == settings else { return (false, false) }
            // An unusable part keeps its stamps and is read again by the next check.
            if fault == nil {
                var file = WatchedFile(read: reading.stamps, settling: Self.settling)
                _ = file.check(reading.stamps, at: uptime())
                state.files[part] = file
            }
            defer { state.faults[part] = fault?.message }
            return (true, state.faults[part] != fault?.message)
        }
        guard isCurrent else { return false }
        guard let fault else {
            // The content is there; the fault is nil.
            if let content = try? reading.content.get() { apply(content) }
            return true
        }
        if isNew {
            logger.error(
                "tokens and keys not read again; the last valid ones stay in force",
                metadata: ["key": "\(fault.settingKey)", "error": "\(fault.message)"])
        }
        return false
    }

    /// Downloads the JWK set if it is due: at the start, every hour, and for a token with an unknown key at most once a
    /// minute. A failure keeps the old keys; the next attempts follow after 1 s, 2 s, 4 s and so on up to a minute.
    @Sendable func refreshKeySet() async {
        let now = uptime()
        let (settings, due) = state.withLock { ($0.settings, $0.downloadsAt) }
        guard let url = settings.jwt.keysURL else { return directory.update(missingKeySet: nil) }
        let isAsked = directory.takeKeyRequest(at: now)
        guard isAsked || now >= due else { return }
        do throws(CacheError) {
            let keys = try JSONWebKeySet.parse(try await download(url))
            state.withLock { ($0.downloadsAt, $0.failures) = (now + Self.downloadInterval, 0) }
            directory.update(keys: keys)
            directory.update(missingKeySet: nil)
            live.withLock { $0 }?.replace { $0 }
            logger.info("key set read", metadata: ["keys": "\(keys.keys.count)", "skipped": "\(keys.skipped)"])
        } catch {
            let pause = state.withLock { state in
                let pause = min(Self.longestRetryInterval, .seconds(1 << min(state.failures, 10)))
                state.failures += 1
                state.downloadsAt = uptime() + pause
                return pause
            }
            directory.update(missingKeySet: url)
            logger.warning(
                "key set not read; the old keys stay in force",
                metadata: ["error": "\(error.message)", "nextAttemptSeconds": "\(pause.components.seconds)"])
        }
    }

    /// Puts the settings in force that no file contains.
    private func apply(_ settings: AccessSettings) {
        directory.update(adminToken: settings.token?.exposed, readToken: settings.readToken?.exposed)
        let jwt = settings.jwt
        directory.update(
            rules: jwt.isEnabled
                ? JWTRules(
                    issuer: jwt.issuer, audience: jwt.audience, algorithms: Set(jwt.algorithms),
                    scopeClaim: jwt.scopeClaim) : nil)
        signatures.update(
            rules: ContentSignatures.Rules(
                grace: settings.signing.grace, issuers: Set(settings.signing.issuers), audience: jwt.audience))
    }

    private func apply(_ content: Content) {
        switch content {
        case .tokens(let file): directory.update(file: file)
        case .keySet(let keys?): directory.update(keys: keys)
        case .keySet(nil): break  // the keys are those of the URL
        case .signingKeys(let keys): signatures.update(keys: keys)
        }
    }

    // MARK: Files

    /// Reads and parses a part. Blocks its thread.
    private static func read(_ part: Part, _ settings: AccessSettings) -> Reading {
        let stamps = stamps(of: part, settings)
        return Reading(
            part: part, stamps: stamps,
            content: Result { () throws(CacheError) in try content(of: part, part.path(in: settings)) })
    }

    private static func content(of part: Part, _ path: String?) throws(CacheError) -> Content {
        switch part {
        case .tokens:
            guard let path else { return .tokens(nil) }
            return .tokens(
                try parsed(path, part.key) { (bytes) throws(CacheError) in try TokensFile.parse(bytes) })
        case .keySet:
            guard let path else { return .keySet(nil) }
            return .keySet(
                try parsed(path, part.key) { (bytes) throws(CacheError) in try JSONWebKeySet.parse(bytes) })
        case .signingKeys:
            guard let path else { return .signingKeys(SigningKeys()) }
            var files: [SigningKeys.File] = []
            for name in try names(in: path, part.key) {
                files.append(SigningKeys.File(name: name, content: try bytes(of: path + "/" + name, part.key)))
            }
            do {
                return .signingKeys(try SigningKeys(files: files))
            } catch {
                throw .invalid(part.key, "\(error.settingKey): \(error.message)")
            }
        }
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

    /// The stamps of the file, or of the files in the directory. Blocks its thread.
    private static func stamps(of part: Part, _ settings: AccessSettings) -> WatchedFile.Stamps {
        guard let path = part.path(in: settings) else { return [:] }
        guard part == .signingKeys else { return WatchedFile.stamps(of: [path]) }
        // A directory that cannot be read has no files; reading it reports the error.
        return WatchedFile.stamps(of: ((try? names(in: path, "")) ?? []).map { path + "/" + $0 })
    }
}

extension CacheError {
    /// The setting or member of `.invalidField`; empty for other errors.
    fileprivate var settingKey: String { if case .invalidField(let key) = code { key } else { "" } }
}
