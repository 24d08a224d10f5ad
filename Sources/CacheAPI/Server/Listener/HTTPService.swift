import CacheCore
import NIOCore
import ServiceLifecycle

/// The HTTP server with its helpers.
package struct HTTPService: Service {
    let services: ServiceGroup
    let accepting: Accepting

    package func run() async throws { try await services.run() }

    /// The number of connections with a request in progress.
    package var busyConnections: Int { accepting.connections.counts.busy }

    /// Returns when a shutdown has closed the listener and every accepted connection has sent its request, or is closed:
    /// half a second after the listener at the latest.
    package func acceptsNothing() async { await accepting.end() }
}

/// Tells when the server has stopped accepting requests.
final class Accepting: Sendable {
    let connections: ConnectionPermits
    private let clock: any Clock<Duration>
    private let listeners = OrderedMutex<[any Channel]>(.leaf, [])

    init(_ connections: ConnectionPermits, clock: any Clock<Duration>) {
        self.connections = connections
        self.clock = clock
    }

    func began(on listeners: [any Channel]) { self.listeners.withLock { $0 = listeners } }

    func end() async {
        let listeners = listeners.withLock(\.self)
        await wait(.seconds(1)) { listeners.contains(where: \.isActive) }
        await wait(.milliseconds(500)) { connections.counts.quiet > 0 }
    }

    /// Waits while the condition holds, within the limit.
    private func wait(_ limit: Duration, while isDue: () -> Bool) async {
        let elapsed = clock.stopwatch()
        while isDue(), elapsed() < limit, (try? await clock.sleep(for: .milliseconds(5))) != nil {}
    }
}
