import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import CurlUpstream
import Dispatch
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import UnixSignals

/// The service as a whole: opens the store, starts the rooms, serves until told to stop.
enum Larder {
    /// Serves until SIGTERM or SIGINT; then requests in progress are finished, for as long as the drain time allows, and
    /// everything is committed. Throws what keeps it from starting.
    static func serve(settings: LarderSettings) async throws {
        let files = ProcessLimits.prepare()
        try files.check()
        // As many event loops as there are cores that this process may run on.
        NIOSingletons.groupLoopCountSuggestion = min(System.coreCount, ProcessLimits.cores ?? .max)
        let logger = Logger(label: "larder")
        let connections = files.connections(wished: settings.limits.connections)
        logger.info("open files", metadata: files.metadata(connections: connections))
        try settings.checkCAFiles()
        let store = try openStore(settings.dataDirectory, files, logger: logger)
        let pool = CurlWorkerPool(settings: settings.pool(files), logger: logger)
        let cache = AssetCache(
            doors: AssetCache.Doors(
                store: store, upstream: pool, clock: ContinuousClock(), wallClock: SteadyWallClock(),
                chance: SystemChance(), logger: logger),
            settings: settings.cache)
        try await cache.prepare()
        var counter = settings.counter(openAPI: EmbeddedDocument.openAPI)
        counter.limits.connections = connections
        let isServing = Atomic(false)
        let server = try makeServer(cache, counter, logger: logger) { port in
            isServing.store(true, ordering: .relaxed)
            logger.notice("serving", metadata: ["address": "\(settings.listen.address.host):\(port ?? 0)"])
        }
        let readiness = ReadinessService(
            cache: cache, delay: settings.limits.shutdownDelay, clock: ContinuousClock())
        let services: [any Service] = [CacheService(cache: cache), server, HangUpService(logger: logger), readiness]
        var configuration = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) }, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration =
            settings.limits.shutdownDelay + settings.limits.drainTimeout
        let outcome = await Result.of { try await ServiceGroup(configuration: configuration).run() }
        await close(pool, store, isOrderly: outcome.isSuccess, logger: logger)
        if case .failure(let error) = outcome, !isServing.load(ordering: .relaxed) {
            throw SettingsError("listen.address", "cannot listen on \(settings.listen.address): \(error)")
        }
        try outcome.get()
    }

    private static func openStore(
        _ directory: String, _ files: OpenFileBudget, logger: Logger
    ) throws(SettingsError) -> Store {
        do throws(CacheError) {
            return try Store.open(
                directory: directory, openFileLimit: files.assetFiles, wallClock: SystemWallClock(), logger: logger)
        } catch {
            throw SettingsError("dataDirectory", error.sentence)
        }
    }

    private static func makeServer(
        _ cache: AssetCache, _ settings: APISettings, logger: Logger,
        onRunning: @escaping @Sendable (_ port: Int?) async -> Void
    ) throws(SettingsError) -> some Service {
        do throws(CacheError) {
            return try makeApplication(
                cache: cache, settings: settings, chance: SystemChance(), clock: ContinuousClock(),
                wallClock: SystemWallClock(), logger: logger, onRunning: onRunning)
        } catch {
            let key = if case .invalidField(let key) = error.code { key } else { "listen" }
            throw SettingsError(key, error.message)
        }
    }

    /// Joins the upstream's threads, away from the shared pool, and closes the catalog.
    private static func close(
        _ pool: CurlWorkerPool, _ store: Store, isOrderly: Bool, logger: Logger
    ) async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                pool.shutdown()
                continuation.resume()
            }
        }
        do {
            try store.close(isOrderly: isOrderly)
            logger.notice("stopped")
        } catch {
            logger.error("the catalog was not closed in order", metadata: ["error": "\(error)"])
        }
    }
}

/// The cache's own work, as long as the service runs.
private struct CacheService: Service {
    let cache: AssetCache

    func run() async throws {
        await cancelWhenGracefulShutdown { await cache.run() }
    }
}

/// Logs and ignores SIGHUP, which other services take as a request to read their settings again.
private struct HangUpService: Service {
    let logger: Logger

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            logger.notice("SIGHUP is ignored: settings are read at the start only")
        }
    }
}

/// Listed last and so told first: readiness turns false, and stays so for a while, before the server stops taking
/// connections.
private struct ReadinessService: Service {
    let cache: AssetCache
    let delay: Duration
    let clock: any Clock<Duration>

    func run() async throws {
        try await gracefulShutdown()
        cache.drain()
        try await clock.sleep(for: delay)
    }
}

extension Result where Failure == any Error {
    fileprivate var isSuccess: Bool {
        if case .success = self { true } else { false }
    }

    fileprivate static func of(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
