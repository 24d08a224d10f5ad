import CacheAPI
import CacheCore
import CacheEngine
import CurlUpstream
import Dispatch
import Logging
import ServiceLifecycle
import UnixSignals

/// Delays the shutdown of the server.
///
/// The service group shuts services down in reverse order, so this last service is notified first: 1. readiness becomes
/// false; 2. the delay passes; 3. the server stops accepting connections.
struct ReadinessService: Service {
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

/// Runs the server. If its sockets stay open in a service manager, the next process can start during the shutdown: the
/// store is handed over while the responses in progress are finished.
struct ServerService: Service {
    let server: HTTPService
    let cache: AssetCache
    let pool: CurlWorkerPool
    let readers: ReaderSources
    let handsOver: Bool

    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            if handsOver {
                group.addTask {
                    try? await gracefulShutdown()  // throws only if cancelled
                    if !Task.isCancelled { await handOver() }
                }
            }
            try await server.run()
            group.cancelAll()
        }
    }

    private func handOver() async {
        await server.acceptsNothing()
        await pool.shutdownInBackground()
        await readers.keepUses()
        cache.handOver()
    }
}

extension CurlWorkerPool {
    /// Ends all transfers and joins their threads, outside the cooperative thread pool because joining blocks.
    func shutdownInBackground() async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                self.shutdown()
                continuation.resume()
            }
        }
    }
}

/// Reports the progress of a shutdown, and cuts the responses in progress at a second signal. It ends after all others.
struct ShutdownProgress: Service {
    let server: HTTPService
    let supervisor: Supervisor
    let logger: Logger
    let clock: any Clock<Duration>
    /// Cuts the responses.
    let cut: @Sendable () -> Void

    /// The interval of the reports.
    private static let interval = Duration.seconds(5)

    func run() async throws {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await followSignals() }
            try? await gracefulShutdown()  // throws only if cancelled
            group.cancelAll()
        }
    }

    private func followSignals() async {
        await withDiscardingTaskGroup { group in
            var isStopping = false
            for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint) {
                guard isStopping else {
                    isStopping = true
                    group.addTask { await report() }
                    continue
                }
                logger.notice("second signal: the responses in progress are cut")
                return cut()
            }
        }
    }

    private func report() async {
        while (try? await clock.sleep(for: Self.interval)) != nil {
            let count = server.busyConnections
            logger.notice("finishing the responses in progress", metadata: ["connections": "\(count)"])
            supervisor.notify(.stopping(status: "Finishing the responses of \(count) connections"))
        }
    }
}
