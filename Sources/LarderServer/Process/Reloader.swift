import CacheAPI
import CacheCore
import CacheEngine
import Logging
import NIOPosix
import ServiceLifecycle

/// Service that reads the settings again when a file has changed, and on request; it applies all of them or none.
///
/// A changed file is read when it has settled (``WatchedFile``), and a new upstream server is applied by the next equal
/// check. A request applies both at once. An unusable configuration file does not delay a changed token file: it is
/// applied with the last valid configuration.
///
/// 1. All settings are read and validated, with the flags and the environment of the start.
/// 2. Settings that only a start applies keep their values; ``ConfigurationReport/needsRestart`` lists them.
/// 3. Each applier prepares. After the first error nothing is applied, and the settings in force stay.
/// 4. Each applier commits, which cannot fail. Requests in progress end with their old settings.
final class Reloader: Service {
    /// The state of the configuration.
    private struct State {
        /// The last valid settings, those that only a start applies included.
        var read: ReadSettings
        /// The settings in force.
        var applied: LarderSettings
        var loadedAt: Timestamp
        /// Nil after a successful reading.
        var fault: ConfigurationReport.Fault?
        var needsRestart: [String] = []
        /// The watched files, by path.
        var files: [String: WatchedFile] = [:]
        /// The stamps of files with a new upstream server, which the next equal check applies; nil: none.
        var held: WatchedFile.Stamps?
    }

    /// The cause of a reading.
    private enum Cause: Hashable, Sendable {
        /// A signal or a call of the API.
        case request
        /// Changed files have settled.
        case check
        /// A token file has changed; the configuration file is not read.
        case tokens
    }

    /// The result of a reading of all files.
    private struct Reading: Sendable {
        let cause: Cause
        /// The stamps before the files were read, so that a change during the reading will be noticed.
        let stamps: WatchedFile.Stamps
        /// The settings in force.
        let running: LarderSettings
        let candidate: Result<Candidate, SettingsError>
        let laterStamps: WatchedFile.Stamps
    }

    /// Settings that were read and validated.
    private struct Candidate: Sendable {
        var read: ReadSettings
        /// The settings to apply.
        var next: LarderSettings
        var needsRestart: [String]
    }

    /// The time without a change after which the configuration file is read, and that for token files.
    private static let settling = Duration.seconds(4)
    private static let tokenSettling = Duration.seconds(1)

    private let input: SettingsInput
    private let appliers: [any SettingsApplier]
    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    private let wallClock: any WallClock
    private let logger: Logger
    /// Serialises reloads.
    private let turn = AsyncMutex()
    /// Guards the state of the configuration.
    private let state: OrderedMutex<State>

    /// - Parameters:
    ///   - read: The settings that `input` had at the start; they are in force.
    ///   - appliers: The parts that apply changed settings, in the order of their preparation.
    init(
        _ input: SettingsInput, _ read: ReadSettings, appliers: [any SettingsApplier], clock: any Clock<Duration>,
        wallClock: any WallClock, logger: Logger
    ) {
        self.input = input
        self.appliers = appliers
        self.clock = clock
        uptime = clock.stopwatch()
        self.wallClock = wallClock
        self.logger = logger
        state = OrderedMutex(.leaf, State(read: read, applied: read.settings, loadedAt: wallClock.now()))
        state.withLock { watch(read, in: &$0) }
    }

    /// Checks the files until graceful shutdown.
    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while (try? await clock.sleep(for: WatchedFile.checkInterval)) != nil {  // fails only when cancelled
                await refresh()
            }
        }
    }

    /// Reloads if a watched file has changed and settled, or if the last reading failed: its cause may be a file that is
    /// not watched, such as a file of certificate authorities.
    func refresh() async {
        let paths = state.withLock { Array($0.files.keys) }
        let stamps = await Self.blocking { WatchedFile.stamps(of: paths) }
        guard let stamps else { return }
        let now = uptime()
        let (due, isSettled, hasFailed) = state.withLock { state in
            let due = paths.filter { path in
                state.files[path]?.check(stamps.filter { $0.key == path }, at: now) ?? false
            }
            let isSettled = paths.allSatisfy { due.contains($0) || !(state.files[$0]?.hasChanged ?? false) }
            return (due, isSettled, state.fault != nil)
        }
        if isSettled, !due.isEmpty || hasFailed, await reload(after: .check) { return }
        if due.contains(where: { $0 != input.file }) { _ = await reload(after: .tokens) }
    }

    // MARK: Reloading

    /// Reads and validates all settings.
    private func read(_ cause: Cause) async throws(CacheError) -> Reading {
        let (running, former, paths) = state.withLock { ($0.applied, $0.read, $0.files.keys.sorted()) }
        let input = input
        let reading = await Self.blocking {
            Reading(
                cause: cause, stamps: WatchedFile.stamps(of: paths), running: running,
                candidate: Self.candidate(input, running, former: former, cause),
                laterStamps: WatchedFile.stamps(of: paths))
        }
        guard let reading else { throw CacheError(.shuttingDown, "The service is shutting down.") }
        return reading
    }

    /// Whether the result of a check may be applied: no file has changed during the reading, and a new upstream server
    /// was there at the last check, too.
    private func isConfirmed(_ reading: Reading) -> Bool {
        guard reading.stamps == reading.laterStamps else { return false }
        // An error is reported when the reading is applied.
        guard let next = (try? reading.candidate.get())?.next, next.hasNewServer(since: reading.running) else {
            return true
        }
        return state.withLock { state in
            defer { state.held = reading.stamps }
            return state.held == reading.stamps
        }
    }

    /// Applies all settings that were read.
    private func apply(_ reading: Reading) async throws(CacheError) -> ReloadResult {
        let (cause, running) = (reading.cause, reading.running)
        if let file = input.file, cause != .tokens { markRead([file], reading.stamps) }
        let candidate: Candidate
        do throws(SettingsError) { candidate = try reading.candidate.get() } catch { throw error.cacheError }
        var commits: [@Sendable () -> Void] = []
        for applier in appliers { commits.append(try await applier.prepare(from: running, to: candidate.next)) }
        for commit in commits { commit() }
        let loadedAt = wallClock.now()
        // After an error, a changed token file remains due for a reading of its own.
        markRead(input.tokenFiles(of: running), reading.stamps)
        state.withLock { state in
            state.read = candidate.read
            state.applied = candidate.next
            watch(candidate.read, in: &state)
            // The fault of the configuration file stays.
            guard cause != .tokens else { return }
            state.loadedAt = loadedAt
            state.fault = nil
            state.held = nil
            state.needsRestart = candidate.needsRestart
        }
        return ReloadResult(
            loadedAt: loadedAt, changed: candidate.next.changedKeys(since: running),
            needsRestart: candidate.needsRestart)
    }

    private func markRead(_ paths: [String], _ stamps: WatchedFile.Stamps) {
        state.withLock { state in
            for path in paths { state.files[path]?.markRead(stamps.filter { $0.key == path }) }
        }
    }

    /// Watches the files of the settings; those that are watched already keep their state.
    private func watch(_ read: ReadSettings, in state: inout State) {
        let known = state.files
        state.files = [:]
        for path in input.files(with: read.settings) {
            state.files[path] =
                known[path]
                ?? WatchedFile(
                    read: read.stamps.filter { $0.key == path },
                    settling: path == input.file ? Self.settling : Self.tokenSettling)
        }
    }

    /// Reads and validates the settings. Blocks its thread.
    private static func candidate(
        _ input: SettingsInput, _ running: LarderSettings, former: ReadSettings, _ cause: Cause
    ) -> Result<Candidate, SettingsError> {
        Result { () throws(SettingsError) in
            let read = cause == .tokens ? try input.read(content: former.content) : try input.read()
            if let file = input.file, cause != .tokens {
                // A file that is being written is empty for a moment. That must not unmount all origins.
                if former.isFileUsed, !read.isFileUsed {
                    throw SettingsError(file, "contains no settings; write a new file and rename it")
                }
                if read.content?.isComplete == false {
                    throw SettingsError(file, "is incomplete: its last line has no line feed; add one")
                }
            }
            try read.settings.checkExposure()
            try read.settings.checkCAFiles()
            let next = read.settings.keepingFixed(of: running)
            let needsRestart = read.settings.needingRestart(from: running)
            do throws(SettingsError) {
                try next.checkTogether()
                try next.checkExposure()
            } catch {
                // Valid as a whole, but not with the settings that stay until the next start.
                throw SettingsError(
                    error.key,
                    "\(error.problem); without a restart, these keep their values: "
                        + needsRestart.joined(separator: ", "))
            }
            // A file that is being written may end before its tokens.
            if running.access.hasReaders, !read.settings.access.hasReaders, !read.settings.access.allowUnauthenticated {
                throw SettingsError(
                    "access", "contains no token any more; set access.allowUnauthenticated, or restart without tokens")
            }
            return Candidate(read: read, next: next, needsRestart: needsRestart)
        }
    }

    /// Reloads after a check. Returns whether the settings were applied; faults are recorded and logged.
    private func reload(after cause: Cause) async -> Bool {
        do throws(CacheError) {
            return try await turn.pass { () async throws(CacheError) in
                let reading = try await read(cause)
                guard cause == .tokens || isConfirmed(reading) else { return false }
                _ = try await finish(reading)
                return true
            }
        } catch {
            return false
        }
    }

    /// Applies a reading, and records and logs the outcome.
    private func finish(_ reading: Reading) async throws(CacheError) -> ReloadResult {
        let known = state.withLock { $0.needsRestart }
        do throws(CacheError) {
            let result = try await apply(reading)
            succeeded(result, formerly: known)
            return result
        } catch {
            failed(error)
            throw error
        }
    }

    /// Records a failed reading; its fault is logged once.
    private func failed(_ error: CacheError) {
        let key: String? = if case .invalidField(let key) = error.code { key } else { nil }
        let isNew = state.withLock { state in
            if let known = state.fault, known.key == key, known.message == error.message { return false }
            state.fault = ConfigurationReport.Fault(key: key, message: error.message, at: wallClock.now())
            return true
        }
        guard isNew else { return }
        logger.error(
            "configuration not reloaded; the last valid one stays in force",
            metadata: ["key": "\(key ?? "none")", "error": "\(error.message)"])
    }

    /// Logs a successful reading; settings that need a restart once.
    private func succeeded(_ result: ReloadResult, formerly known: [String]) {
        logger.notice("configuration reloaded", metadata: ["changed": "\(result.changed.joined(separator: ", "))"])
        guard !result.needsRestart.isEmpty, result.needsRestart != known else { return }
        logger.warning(
            "changed settings are applied by the next start only",
            metadata: ["settings": "\(result.needsRestart.joined(separator: ", "))"])
    }

    /// Runs `body` on NIO's thread pool, because file reads block. Nil: the pool has been shut down.
    private static func blocking<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        try? await NIOThreadPool.singleton.runIfActive(body)
    }
}

extension Reloader: ConfigurationSource {
    var report: ConfigurationReport {
        let state = state.withLock { $0 }
        return ConfigurationReport(
            file: input.file, loadedAt: state.loadedAt, fault: state.fault, needsRestart: state.needsRestart,
            settings: state.read.report)
    }

    var figures: ReloadFigures? {
        state.withLock { ReloadFigures(isSuccessful: $0.fault == nil, loadedAt: $0.loadedAt) }
    }

    func reload() async throws(CacheError) -> ReloadResult {
        try await turn.pass { () async throws(CacheError) in try await finish(try await read(.request)) }
    }
}

extension SettingsError {
    /// The error of the API for this setting.
    fileprivate var cacheError: CacheError { CacheError(.invalidField(key), "\(key) \(problem).") }
}
