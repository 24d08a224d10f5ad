import CLinux
import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import CacheTracing
import CurlUpstream
import Dispatch
import Foundation
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
    /// - Parameters:
    ///   - input: The inputs of the settings, for reloads.
    ///   - read: The settings.
    ///   - events: The recent changes of state, with the warnings of the log.
    ///   - logLevel: The minimum level of the log.
    static func serve(
        _ input: SettingsInput, _ read: ReadSettings, events: EventLog, logLevel: LiveLogLevel
    ) async throws {
        let settings = read.settings
        let files = ProcessLimits.prepare()
        try files.check()
        // One event loop per core that this process may use.
        NIOSingletons.groupLoopCountSuggestion = min(System.coreCount, ProcessLimits.cores ?? .max)
        let logger = Logger(label: "larder")
        let supervisor = Supervisor(environment: ProcessInfo.processInfo.environment, process: getpid())
        let connections = files.connections(
            wished: settings.limits.maxConnections, sockets: settings.listen.socketCount)
        logger.info("open files", metadata: files.metadata(connections: connections))
        try settings.checkCAFiles()
        let store = try await openStore(settings, files, logger: logger)
        let pool = CurlWorkerPool(settings: settings.pool(files), clock: ContinuousClock(), logger: logger)
        let readers = try await readerSources(settings, pool, store, logger: logger)
        let tracing = try Tracing(settings.telemetry, logger: logger)
        let cache = AssetCache(
            dependencies: AssetCache.Dependencies(
                store: store, upstream: pool, clock: ContinuousClock(), wallClock: SlewedClock(),
                random: SystemRandomSource(), logger: logger, events: events,
                tracer: tracing.tracer, environment: ProcessInfo.processInfo.environment),
            settings: settings.cache)
        try await prepare(cache)
        var counter = settings.apiSettings(
            openAPI: EmbeddedDocument.openAPI,
            dashboard: EmbeddedDocument.dashboard.map { APISettings.DashboardFile(name: $0.name, text: $0.text) },
            readers: readers.rules(settings.access))
        counter.limits.maxConnections = connections
        let live = LiveAPISettings(counter)
        readers.attach(live)
        let reloader = Reloader(
            input, read,
            appliers: [
                LogApplier(level: logLevel), PoolApplier(pool: pool, files: files),
                APIApplier(live: live, readers: readers), EncryptionApplier(store: store),
                CacheApplier(configuration: cache.configuration),
            ],
            clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger)
        // An error before the listener is open is a configuration error.
        let isServing = Atomic(false)
        let server = try makeServer(cache, counter, live, reloader, logger: logger) { bound in
            isServing.store(true, ordering: .relaxed)
            supervisor.serves(bound, logger: logger)
        }
        let background: [any Service] = [
            CacheService(cache: cache), readers, server, reloader, HeapTrimmer(clock: ContinuousClock()),
            HangUpService(reloader: reloader, supervisor: supervisor, logger: logger),
        ]
        let services = frame(background, cache, tracing.exporter, supervisor, delay: settings.limits.shutdownDelay)
        let group = serviceGroup(services, settings.limits, logger: logger)
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { loop.execute { ThreadPriority.raise() } }
        let outcome = await Result.of { try await group.run() }
        await close(pool, store, isOrderly: outcome.isSuccess, logger: logger)
        if case .failure(let error) = outcome, !isServing.load(ordering: .relaxed) {
            throw listenFault(error, settings.listen.address)
        }
        try outcome.get()
    }

    /// The error of a server that could not listen. A fault of a socket's file names its setting.
    private static func listenFault(_ error: any Error, _ address: ListenAddress) -> SettingsError {
        if let error = error as? CacheError, case .invalidField(let key) = error.code {
            return SettingsError(key, error.message)
        }
        return SettingsError("listen.address", "cannot listen on \(address): \(error)")
    }

    /// Loads the stored state; errors of the configuration's origins refer to their settings.
    private static func prepare(_ cache: AssetCache) async throws {
        do throws(CacheError) {
            try await cache.prepare()
        } catch {
            guard case .invalidField(let key) = error.code else { throw error }
            throw SettingsError(key, error.message)
        }
    }

    /// The services in the order of their start, with those that a shutdown ends first and last.
    private static func frame(
        _ services: [any Service], _ cache: AssetCache, _ exporter: OTLPExporter?, _ supervisor: Supervisor,
        delay: Duration
    ) -> [any Service] {
        let watchdog = WatchdogService(
            supervisor: supervisor, group: MultiThreadedEventLoopGroup.singleton, clock: ContinuousClock())
        let readiness = ReadinessService(
            cache: cache, supervisor: supervisor, delay: delay, clock: ContinuousClock())
        return [watchdog] + (exporter.map { [TraceService(exporter: $0)] } ?? []) + services + [readiness]
    }

    /// The group that ends the services after a signal, within the time limits for a shutdown.
    private static func serviceGroup(
        _ services: [any Service], _ limits: LimitSettings, logger: Logger
    ) -> ServiceGroup {
        var configuration = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) }, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration = limits.shutdownDelay + limits.drainTimeout
        return ServiceGroup(configuration: configuration)
    }

    /// Reads the tokens and keys of readers, and the record of earlier tokens; its errors refer to the setting that names the file.
    private static func readerSources(
        _ settings: LarderSettings, _ upstream: any Upstream, _ store: Store, logger: Logger
    ) async throws(SettingsError) -> ReaderSources {
        let (catalog, name) = (store.catalog, "issued tokens")
        let record = ReaderSources.TokenRecord(
            load: { () async throws(CacheError) in try await catalog.secret(name) },
            save: { (text) async throws(CacheError) in try await catalog.saveSecret(text, as: name) })
        let readers: ReaderSources
        do throws(CacheError) {
            readers = try ReaderSources(
                settings.access, clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger, record: record
            ) { (url) async throws(CacheError) in try await DocumentDownload.get(url, over: upstream) }
        } catch {
            let key = if case .invalidField(let key) = error.code { key } else { "access" }
            throw SettingsError(key, error.message)
        }
        await readers.recallTokens()
        return readers
    }

    /// Opens the store and reads the master keys; its errors refer to the settings.
    private static func openStore(
        _ settings: LarderSettings, _ files: OpenFileBudget, logger: Logger
    ) async throws(SettingsError) -> Store {
        // The memory will have keys and content. Without support of the kernel the service starts nevertheless.
        if settings.encryption.hasKeys { _ = larder_forbid_dumps() }
        let store: Store
        do throws(CacheError) {
            store = try Store.open(
                directory: settings.dataDirectory, openFileLimit: files.assetFiles, wallClock: SystemWallClock(),
                logger: logger)
        } catch {
            throw SettingsError("dataDirectory", error.sentence)
        }
        do throws(CacheError) {
            try await EncryptionApplier(store: store).prepare(from: settings, to: settings)()
        } catch {
            let key = if case .invalidField(let key) = error.code { key } else { "encryption" }
            throw SettingsError(key, error.message)
        }
        return store
    }

    /// Creates the HTTP server; its errors refer to the setting that caused them.
    private static func makeServer(
        _ cache: AssetCache, _ settings: APISettings, _ live: LiveAPISettings, _ source: any ConfigurationSource,
        logger: Logger,
        onRunning: @escaping @Sendable (BoundAddresses) async -> Void
    ) throws(SettingsError) -> some Service {
        do throws(CacheError) {
            return try makeApplication(
                cache: cache, settings: settings, live: live, source: source, random: SystemRandomSource(),
                clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger, onRunning: onRunning)
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

extension Supervisor {
    /// Logs and reports that the server listens.
    fileprivate func serves(_ bound: BoundAddresses, logger: Logger) {
        let addresses = bound.urls.joined(separator: " ")
        logger.notice("serving", metadata: ["address": "\(addresses)"])
        notify(.ready(status: "Serving \(addresses)"))
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

/// Reloads the configuration on SIGHUP.
private struct HangUpService: Service {
    let reloader: Reloader
    let supervisor: Supervisor
    let logger: Logger

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            logger.notice("SIGHUP received")
            supervisor.notify(.reloading(at: Supervisor.monotonicTime()))
            do {
                _ = try await reloader.reload()
                supervisor.notify(.ready(status: "Serving with the reloaded configuration"))
            } catch {
                // The reloader records and logs the fault.
                supervisor.notify(.ready(status: "Serving with the last valid configuration; the log names the fault"))
            }
        }
    }
}

/// Delays the shutdown of the server.
///
/// The service group shuts services down in reverse order, so this last service is notified first: 1. readiness becomes
/// false; 2. the delay passes; 3. the server stops accepting connections.
private struct ReadinessService: Service {
    let cache: AssetCache
    let supervisor: Supervisor
    let delay: Duration
    let clock: any Clock<Duration>

    func run() async throws {
        try await gracefulShutdown()
        supervisor.notify(.stopping(status: "Finishing the requests in progress"))
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
