import CacheAPI
import CacheCore
import CacheEngine
import Logging
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Service that reads the settings again when a file has changed, and on request; it applies all of them or none.
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
        /// The watched files before they were last read, by path; files that do not exist have no stamp.
        var stamps: [String: FileStamp]
    }

    /// Settings that were read and validated.
    private struct Candidate: Sendable {
        var read: ReadSettings
        /// The settings to apply.
        var next: LarderSettings
        var needsRestart: [String]
    }

    /// The time between two checks of the files.
    static let checkInterval = Duration.seconds(2)

    private let input: SettingsInput
    private let appliers: [any SettingsApplier]
    private let clock: any Clock<Duration>
    private let wallClock: any WallClock
    private let logger: Logger
    /// Serialises reloads.
    private let turn = AsyncMutex()
    /// Guards the state of the configuration.
    private let state: Mutex<State>

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
        self.wallClock = wallClock
        self.logger = logger
        state = Mutex(
            State(
                read: read, applied: read.settings, loadedAt: wallClock.now(), stamps: read.stamps))
    }

    /// Checks the files every `checkInterval` until graceful shutdown.
    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while (try? await clock.sleep(for: Self.checkInterval)) != nil {  // fails only when cancelled
                await refresh()
            }
        }
    }

    /// Reloads if a watched file has changed, or if the last reading failed: its cause may be a file that is not
    /// watched, such as a file of certificate authorities.
    func refresh() async {
        let (files, known, hasFailed) = state.withLock {
            (input.files(with: $0.applied), $0.stamps, $0.fault != nil)
        }
        let stamps = await Self.blocking { Self.stamps(of: files) }
        guard let stamps, hasFailed || stamps != known else { return }
        // The fault is recorded and logged.
        _ = try? await reload()
    }

    // MARK: Reloading

    /// Reads, validates and applies all settings.
    private func attempt() async throws(CacheError) -> ReloadResult {
        let (running, files, wasFileUsed) = state.withLock {
            ($0.applied, self.input.files(with: $0.applied), $0.read.isFileUsed)
        }
        // The stamps are older than the content: a change during the reading will be noticed.
        let input = input
        let found = await Self.blocking {
            (
                stamps: Self.stamps(of: files),
                result: Self.candidate(input, running, wasFileUsed: wasFileUsed)
            )
        }
        guard let found else { throw CacheError(.shuttingDown, "The service is shutting down.") }
        state.withLock { $0.stamps = found.stamps }
        let candidate: Candidate
        do throws(SettingsError) { candidate = try found.result.get() } catch { throw error.cacheError }
        var commits: [@Sendable () -> Void] = []
        for applier in appliers { commits.append(try await applier.prepare(from: running, to: candidate.next)) }
        for commit in commits { commit() }
        let loadedAt = wallClock.now()
        state.withLock { state in
            state.read = candidate.read
            state.applied = candidate.next
            state.loadedAt = loadedAt
            state.fault = nil
            state.needsRestart = candidate.needsRestart
            let earlier = found.stamps.filter { candidate.read.stamps[$0.key] != nil }
            state.stamps = candidate.read.stamps.merging(earlier) { $1 }
        }
        return ReloadResult(
            loadedAt: loadedAt, changed: candidate.next.changedKeys(since: running),
            needsRestart: candidate.needsRestart)
    }

    /// Reads and validates the settings. Blocks its thread.
    private static func candidate(
        _ input: SettingsInput, _ running: LarderSettings, wasFileUsed: Bool
    ) -> Result<Candidate, SettingsError> {
        Result { () throws(SettingsError) in
            let read = try input.read()
            // A file that is being written is empty for a moment. That must not unmount all origins.
            if let file = input.file, wasFileUsed, !read.isFileUsed {
                throw SettingsError(file, "contains no settings; write a new file and rename it")
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

    // MARK: Files

    /// The stamps of the files that exist. Blocks its thread.
    private static func stamps(of files: [String]) -> [String: FileStamp] {
        files.reduce(into: [:]) { $0[$1] = FileStamp(path: $1) }
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
        try await turn.pass { () async throws(CacheError) in
            do throws(CacheError) {
                let known = state.withLock { $0.needsRestart }
                let result = try await attempt()
                succeeded(result, formerly: known)
                return result
            } catch {
                failed(error)
                throw error
            }
        }
    }
}

extension SettingsError {
    /// The error of the API for this setting.
    fileprivate var cacheError: CacheError { CacheError(.invalidField(key), "\(key) \(problem).") }
}
