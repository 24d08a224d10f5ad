import CCurl
package import CacheCore
package import Logging

/// The instants of the pool's clock.
typealias Instant = ContinuousClock.Instant

/// The upstream client on libcurl's multi interface: a few worker threads, each with a connection cache of its own.
package final class CurlWorkerPool: Upstream {
    /// `curl_global_init` runs once per process.
    private static let isReady: Bool = larder_global_init() == CURLE_OK

    private let scheduler: TransferScheduler
    /// Guards the list of running threads; empty after the shutdown.
    private let threads: OrderedMutex<[WorkerThread]>
    private let logger: Logger

    /// Starts the worker threads. Logs an error if the system provides fewer than configured. `clock` must advance in
    /// real time, because libcurl's own timers do.
    package init<C: Clock>(settings: CurlPoolSettings = CurlPoolSettings(), clock: C, logger: Logger)
    where C.Instant == ContinuousClock.Instant {
        if !Self.isReady { logger.error("libcurl could not be initialised") }
        let scheduler = TransferScheduler(settings: settings, now: { clock.now })
        let threads = scheduler.commandQueues.enumerated().compactMap { index, commandQueue in
            let thread = WorkerThread {
                if settings.isRaised { ThreadPriority.raise() }
                CurlWorker(index: index, commandQueue: commandQueue, scheduler: scheduler, settings: settings).run()
            }
            if thread == nil { scheduler.abandon(commandQueue.close()) }
            return thread
        }
        if threads.count < settings.workers {
            logger.error("not every transfer worker could be started", metadata: ["started": "\(threads.count)"])
        }
        self.scheduler = scheduler
        self.threads = OrderedMutex(.leaf, threads)
        self.logger = logger
    }

    deinit { shutdown() }

    package func start(_ request: UpstreamRequest, delivering delegate: any TransferDelegate) -> any Transfer {
        let transfer = CurlTransfer(request, ticket: scheduler.nextTicket(), delegate: delegate, scheduler: scheduler)
        scheduler.start(transfer)
        return transfer
    }

    /// Changes the limits of all transfers together: their number, and their rate in bytes per second (nil: no limit).
    package func setLimits(maxTransfers: Int, maxBytesPerSecond: Int64?) {
        scheduler.setLimits(maxTransfers: max(1, maxTransfers), maxBytesPerSecond: maxBytesPerSecond)
    }

    package func check(_ tls: TLSSettings) throws(CacheError) { try tls.checkCAFile() }

    package func parse(url: String) throws(CacheError) -> UpstreamURL { try Self.parsed(url: url) }

    /// As ``parse(url:)``, without a pool.
    package static func parsed(url: String) throws(CacheError) -> UpstreamURL { try CurlURL.parse(url) }

    /// Ends every transfer with `.shuttingDown` and joins the threads. Idempotent. Must not be called by a delegate, as
    /// it would wait for its own thread.
    package func shutdown() {
        scheduler.stop()
        threads.withLock { threads in
            guard !threads.isEmpty else { return }
            for thread in threads { thread.join() }
            threads = []
            logger.debug("transfer workers stopped")
        }
    }

    /// The current rate limit of `transfer` in bytes per second; nil: no limit. For tests.
    func rate(of transfer: any Transfer) -> Int64? {
        (transfer as? CurlTransfer).flatMap { scheduler.rates(of: [$0])[0] }
    }

    package func isFailing(_ url: String) -> Bool {
        Self.server(of: url).map { scheduler.addresses.isFailing($0) } ?? false
    }

    package func addresses(of url: String) -> [AddressFigures] {
        Self.server(of: url).map { scheduler.addresses.figures(of: $0) } ?? []
    }

    /// The key of the address table; nil for a URL that cannot be parsed.
    private static func server(of url: String) -> String? {
        (try? CurlURL.parse(url)).map { "\($0.host):\($0.port)" }
    }

    package var queuedForReaders: Int { scheduler.queuedForReaders }

    package var load: TransferLoad { scheduler.load }
}
