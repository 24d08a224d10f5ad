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
        let store = try Store.open(
            directory: settings.dataDirectory, openFileLimit: files.assetFiles, wallClock: SystemWallClock(),
            logger: logger)
        var poolSettings = settings.pool
        poolSettings.maxTransfers = files.transfers(wished: poolSettings.maxTransfers)
        let pool = CurlWorkerPool(settings: poolSettings, logger: logger)
        let cache = AssetCache(
            doors: AssetCache.Doors(
                store: store, upstream: pool, clock: ContinuousClock(), wallClock: SteadyWallClock(),
                chance: SystemChance(), logger: logger),
            settings: settings.cache)
        try await cache.prepare()
        var counter = settings.counter(openAPI: EmbeddedDocument.openAPI)
        counter.limits.connections = connections
        let server = try makeApplication(
            cache: cache, settings: counter, chance: SystemChance(),
            clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger
        ) { port in
            logger.notice("serving", metadata: ["address": "\(settings.listen.address.host):\(port ?? 0)"])
        }
        var configuration = ServiceGroupConfiguration(
            services: [
                .init(service: CacheService(cache: cache)),
                .init(service: server), .init(service: HangUpService(logger: logger)),
                .init(
                    service: ReadinessService(
                        cache: cache, delay: settings.limits.shutdownDelay, clock: ContinuousClock())),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration =
            settings.limits.shutdownDelay + settings.limits.drainTimeout
        let outcome = await Result.of { try await ServiceGroup(configuration: configuration).run() }
        await close(pool, store, isOrderly: outcome.isSuccess, logger: logger)
        try outcome.get()
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
