import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import CacheTracing
import CurlUpstream
import Dispatch
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Composition root of the service: opens the store, creates the components and runs them until a signal arrives.
enum Larder {
    /// Runs the service until SIGTERM or SIGINT. Then requests in progress may finish within the drain timeout, and the
    /// store is committed and closed.
    ///
    /// Throws a `SettingsError` or `CacheError` if the service cannot start.
    ///
    /// - Parameter events: The recent changes of state, with the warnings of the log.
    static func serve(settings: LarderSettings, events: EventLog) async throws {
        let files = ProcessLimits.prepare()
        try files.check()
        // One event loop per core that this process may use.
        NIOSingletons.groupLoopCountSuggestion = min(System.coreCount, ProcessLimits.cores ?? .max)
        let logger = Logger(label: "larder")
        let connections = files.connections(wished: settings.limits.maxConnections)
        logger.info("open files", metadata: files.metadata(connections: connections))
        try settings.checkCAFiles()
        let store = try openStore(settings.dataDirectory, files, logger: logger)
        let pool = CurlWorkerPool(settings: settings.pool(files), clock: ContinuousClock(), logger: logger)
        let tracing = try Tracing(settings.telemetry, logger: logger)
        let cache = AssetCache(
            dependencies: AssetCache.Dependencies(
                store: store, upstream: pool, clock: ContinuousClock(), wallClock: SlewedClock(),
                random: SystemRandomSource(), logger: logger, events: events,
                tracer: tracing.tracer),
            settings: settings.cache)
        try await cache.prepare()
        var counter = settings.apiSettings(
            openAPI: EmbeddedDocument.openAPI,
            dashboard: EmbeddedDocument.dashboard.map { APISettings.DashboardFile(name: $0.name, text: $0.text) })
        counter.limits.maxConnections = connections
        // An error before the listener is open is a configuration error.
        let isServing = Atomic(false)
        let server = try makeServer(cache, counter, logger: logger) { port in
            isServing.store(true, ordering: .relaxed)
            logger.notice("serving", metadata: ["address": "\(settings.listen.address.host):\(port ?? 0)"])
        }
        let readiness = ReadinessService(
            cache: cache, delay: settings.limits.shutdownDelay, clock: ContinuousClock())
        let exporter: [any Service] = tracing.exporter.map { [TraceService(exporter: $0)] } ?? []
        let services: [any Service] =
            exporter + [CacheService(cache: cache), server, HangUpService(logger: logger), readiness]
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

    /// Opens the store; its errors refer to the setting `dataDirectory`.
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

    /// Creates the HTTP server; its errors refer to the setting that caused them.
    private static func makeServer(
        _ cache: AssetCache, _ settings: APISettings, logger: Logger,
        onRunning: @escaping @Sendable (_ port: Int?) async -> Void
    ) throws(SettingsError) -> some Service {
        do throws(CacheError) {
            return try makeApplication(
                cache: cache, settings: settings, random: SystemRandomSource(), clock: ContinuousClock(),
                wallClock: SystemWallClock(), logger: logger, onRunning: onRunning)
        } catch {
            let key = if case .invalidField(let key) = error.code { key } else { "listen" }
            throw SettingsError(key, error.message)
        }
    }

    /// Joins the transfer threads, outside the cooperative thread pool because joining blocks, and closes the catalog.
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
            logger.error("the catalog was not closed cleanly", metadata: ["error": "\(error)"])
        }
    }
}

/// Background tasks of the cache.
private struct CacheService: Service {
    let cache: AssetCache

    func run() async throws {
        await cancelWhenGracefulShutdown { await cache.run() }
    }
}

/// Sends the recorded spans. It is the last service that is shut down, so that the spans of the others are sent.
private struct TraceService: Service {
    let exporter: OTLPExporter

    func run() async throws {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await exporter.run() }
            // It throws if the task is cancelled, which ends the exporter as well.
            try? await gracefulShutdown()
            exporter.stop()
        }
    }
}

/// Logs and ignores SIGHUP. Other services reload their configuration on it; this one does not.
private struct HangUpService: Service {
    let logger: Logger

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            logger.notice("SIGHUP is ignored: settings are read at the start only")
        }
    }
}

/// Delays the shutdown of the server.
///
/// The service group shuts services down in reverse order, so this last service is notified first: 1. readiness becomes
/// false; 2. the delay passes; 3. the server stops accepting connections.
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
