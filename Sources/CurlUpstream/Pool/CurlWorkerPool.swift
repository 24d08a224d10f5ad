import CCurl
package import CacheCore
package import Logging
import Synchronization

/// The door to the network on libcurl's multi interface: a few worker threads, each with its own connections.
package final class CurlWorkerPool: Upstream {
    private static let isReady: Bool = larder_global_init() == CURLE_OK

    private let desk: CurlDesk
    private let threads: Mutex<[WorkerThread]>
    private let logger: Logger

    package init(settings: CurlPoolSettings = CurlPoolSettings(), logger: Logger) {
        if !Self.isReady { logger.error("libcurl could not be initialised") }
        let desk = CurlDesk(settings: settings)
        let threads = desk.mailboxes.enumerated().compactMap { index, mailbox in
            let thread = WorkerThread {
                CurlWorker(index: index, mailbox: mailbox, desk: desk, settings: settings).run()
            }
            if thread == nil { desk.abandon(mailbox.close()) }
            return thread
        }
        if threads.count < settings.workers {
            logger.error("not every transfer worker could be started", metadata: ["started": "\(threads.count)"])
        }
        self.desk = desk
        self.threads = Mutex(threads)
        self.logger = logger
    }

    deinit { shutdown() }

    package func start(_ request: UpstreamRequest, delivering delegate: any TransferDelegate) -> any Transfer {
        let transfer = CurlTransfer(request, ticket: desk.nextTicket(), delegate: delegate, desk: desk)
        desk.start(transfer)
        return transfer
    }

    package func check(_ tls: TLSSettings) throws(CacheError) { try tls.checkCAFile() }

    package func parse(url: String) throws(CacheError) -> UpstreamURL { try CurlURL.parse(url) }

    /// Ends every transfer with `.shuttingDown` and waits for the threads; may be called again. Not to be called by a delegate.
    package func shutdown() {
        desk.stop()
        threads.withLock { threads in
            guard !threads.isEmpty else { return }
            for thread in threads { thread.join() }
            threads = []
            logger.debug("transfer workers stopped")
        }
    }

    /// What the pool is doing now.
    package func snapshot() -> CurlPoolSnapshot { desk.snapshot() }

    /// The bytes per second `transfer` may take now; nil: as many as come.
    func rate(of transfer: any Transfer) -> Int64? {
        (transfer as? CurlTransfer).flatMap { desk.rates(of: [$0])[0] }
    }

    package var queuedForReaders: Int { desk.queuedForReaders }

    package var load: TransferLoad {
        let now = snapshot()
        return TransferLoad(
            active: now.active, queued: now.queued, paused: now.paused, activeByOrigin: now.activeByOrigin,
            queuedByOrigin: now.queuedByOrigin,
            workers: now.workers.map {
                TransferLoad.Worker(
                    active: $0.active, ended: $0.ended, openedConnections: $0.openedConnections,
                    reusedConnections: $0.reusedConnections)
            })
    }
}
