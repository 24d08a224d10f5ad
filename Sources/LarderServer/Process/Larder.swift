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
        let (pool, services, receivers) = settings.pools(files, logger: logger)
        let readers = try await readerSources(settings, pool, store, logger: logger)
        let tracing = try Tracing(settings.telemetry, logger: logger)
        let cache = AssetCache(
            dependencies: AssetCache.Dependencies(
                store: store, upstream: pool, services: services, receivers: receivers, clock: ContinuousClock(),
                wallClock: SlewedClock(), civilClock: SystemWallClock(), random: SystemRandomSource(), logger: logger,
                events: events, tracer: tracing.tracer, environment: ProcessInfo.processInfo.environment),
            settings: settings.cache)
        cache.peers.update(settings.peers(files))
        try await prepare(cache)
        let api = apiSettings(settings, readers, connections: connections)
        let live = LiveAPISettings(api)
        readers.attach(live, cache.configuration.tokens)
        let reloader = Reloader(
            input, read,
            appliers: [
                LogApplier(level: logLevel), PoolApplier(pool: pool, files: files), EncryptionApplier(store: store),
                APIApplier(live: live, readers: readers), WebhookApplier(webhooks: cache.webhooks),
                FleetApplier(cache: cache, files: files), CacheApplier(configuration: cache.configuration),
            ],
            clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger)
        // An error before the listener is open is a configuration error.
        let isServing = Atomic(false)
        let http = try makeServer(cache, api, live, reloader, logger: logger) { bound in
            isServing.store(true, ordering: .relaxed)
            supervisor.serves(bound, logger: logger)
        }
        let server = ServerService(
            server: http, cache: cache, pool: pool, readers: readers, handsOver: settings.listen.inherited != nil)
        let background: [any Service] = [
            CacheService(cache: cache), readers, server, reloader, HeapTrimmer(clock: ContinuousClock()),
            HangUpService(
                signals: await UnixSignalsSequence(trapping: .sighup), reloader: reloader, supervisor: supervisor,
                logger: logger),
        ]
        let outcome = await Result.of {
            try await run(background, server, tracing.service, supervisor, settings, logger: logger)
        }
        await close([pool, services, receivers], store, isOrderly: outcome.isSuccess, logger: logger)
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

    /// Runs the services in this order, with those that a shutdown ends first and last, until a signal; a second one cuts
    /// the responses in progress.
    private static func run(
        _ services: [any Service], _ server: ServerService, _ traces: TraceService?, _ supervisor: Supervisor,
        _ settings: LarderSettings, logger: Logger
    ) async throws {
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { loop.execute { ThreadPriority.raise() } }
        let (cuts, cut) = AsyncStream<Void>.makeStream()
        let clock = ContinuousClock()
        let progress = ShutdownProgress(
            server: server.server, supervisor: supervisor, logger: logger, clock: clock, cut: { cut.yield() })
        let watchdog = WatchdogService(
            supervisor: supervisor, group: MultiThreadedEventLoopGroup.singleton, clock: clock)
        // Without a gap between two processes nothing is to be announced.
        let readiness = ReadinessService(
            cache: server.cache, supervisor: supervisor,
            delay: server.handsOver ? .zero : max(settings.limits.shutdownDelay, settings.fleet.leaveTimeout),
            clock: clock)
        let all: [any Service] =
            [watchdog, progress] + (traces.map { [$0] } ?? []) + services + [readiness]
        var configuration = ServiceGroupConfiguration(
            services: all.map { .init(service: $0) }, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration =
            max(settings.limits.shutdownDelay, settings.fleet.leaveTimeout) + settings.limits.drainTimeout
        let group = ServiceGroup(configuration: configuration)
        try await withThrowingTaskGroup(of: Bool.self) { tasks in
            tasks.addTask {
                try await group.run()
                return true
            }
            tasks.addTask { await cuts.first { _ in true } == nil }
            let isWhole = try await tasks.next()
            tasks.cancelAll()
            // The cut services throw the cancellation.
            if isWhole == false { try? await tasks.waitForAll() }
        }
    }

    /// Waits for a former process with the same sockets; it gives the data directory back soon after its stop signal.
    private static func awaitStore(_ settings: LarderSettings, logger: Logger) async {
        guard settings.listen.inherited != nil else { return }
        let clock = ContinuousClock()
        let elapsed = clock.stopwatch()
        let limit = settings.limits.shutdownDelay + settings.limits.drainTimeout + .seconds(5)
        var isLogged = false
        while let holder = try? Store.holder(of: settings.dataDirectory), elapsed() < limit {
            if !isLogged { logger.notice("waiting for the data directory", metadata: ["holder": "\(holder)"]) }
            isLogged = true
            try? await clock.sleep(for: .milliseconds(20))
        }
    }

    /// Reads the tokens and keys of readers, and the records of the former process; its errors refer to the setting that names the file.
    private static func readerSources(
        _ settings: LarderSettings, _ upstream: any Upstream, _ store: Store, logger: Logger
    ) async throws(SettingsError) -> ReaderSources {
        let catalog = store.catalog
        let record = ReaderSources.Record(
            load: { (name) async throws(CacheError) in try await catalog.secret(name) },
            save: { (text, name) async throws(CacheError) in try await catalog.saveSecret(text, as: name) })
        let readers: ReaderSources
        do throws(CacheError) {
            readers = try ReaderSources(
                settings.access, clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger, record: record
            ) { (url) async throws(CacheError) in try await DocumentDownload.get(url, over: upstream) }
        } catch {
            let key = if case .invalidField(let key) = error.code { key } else { "access" }
            throw SettingsError(key, error.message)
        }
        await readers.recall()
        return readers
    }

    /// Opens the store and reads the master keys; its errors refer to the settings.
    private static func openStore(
        _ settings: LarderSettings, _ files: OpenFileBudget, logger: Logger
    ) async throws(SettingsError) -> Store {
        // The memory will have keys and content. Without support of the kernel the service starts nevertheless.
        if settings.encryption.hasKeys { _ = larder_forbid_dumps() }
        await awaitStore(settings, logger: logger)
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

    /// The settings of the HTTP server, for as many connections as there are file descriptors.
    private static func apiSettings(
        _ settings: LarderSettings, _ readers: ReaderSources, connections: Int
    ) -> APISettings {
        var api = settings.apiSettings(
            openAPI: EmbeddedDocument.openAPI,
            dashboard: EmbeddedDocument.dashboard.map { APISettings.DashboardFile(name: $0.name, text: $0.text) },
            readers: readers.rules(settings.access))
        api.limits.maxConnections = connections
        return api
    }

    /// Creates the HTTP server; its errors refer to the setting that caused them.
    private static func makeServer(
        _ cache: AssetCache, _ settings: APISettings, _ live: LiveAPISettings, _ source: any ConfigurationSource,
        logger: Logger,
        onRunning: @escaping @Sendable (BoundAddresses) async -> Void
    ) throws(SettingsError) -> HTTPService {
        do throws(CacheError) {
            return try makeApplication(
                cache: cache, settings: settings, live: live, source: source, random: SystemRandomSource(),
                clock: ContinuousClock(), wallClock: SystemWallClock(), logger: logger, onRunning: onRunning)
        } catch {
            let key = if case .invalidField(let key) = error.code { key } else { "listen" }
            throw SettingsError(key, error.message)
        }
    }

    /// Ends the transfers and closes the catalog.
    private static func close(
        _ pools: [CurlWorkerPool], _ store: Store, isOrderly: Bool, logger: Logger
    ) async {
        for pool in pools { await pool.shutdownInBackground() }
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

/// Reloads the configuration on SIGHUP.
private struct HangUpService: Service {
    /// Made before the service is ready: a signal that comes earlier would be lost.
    let signals: UnixSignalsSequence
    let reloader: Reloader
    let supervisor: Supervisor
    let logger: Logger

    func run() async throws {
        for await _ in signals.cancelOnGracefulShutdown() {
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

extension Result where Failure == any Error {
    fileprivate var isSuccess: Bool {
        if case .success = self { true } else { false }
    }

    fileprivate static func of(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
