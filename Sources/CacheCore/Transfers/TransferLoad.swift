/// A snapshot of all transfers and of the worker threads.
package struct TransferLoad: Hashable, Sendable {
    /// The counts of one worker thread.
    package struct Worker: Hashable, Sendable {
        /// Transfers in flight.
        package var active: Int
        /// Transfers that have ended since the start, including failed ones.
        package var ended: Int
        /// Connections opened since the start.
        package var openedConnections: Int
        /// Requests sent on a connection that was already open.
        package var reusedConnections: Int

        package init(active: Int = 0, ended: Int = 0, openedConnections: Int = 0, reusedConnections: Int = 0) {
            self.active = active
            self.ended = ended
            self.openedConnections = openedConnections
            self.reusedConnections = reusedConnections
        }
    }

    /// Transfers that hold a permit.
    package var active: Int
    /// Transfers that wait for a permit or for their start time, including those that resume.
    package var queued: Int
    /// Paused transfers; they hold no permit.
    package var paused: Int
    /// Transfers that hold a permit, by origin; origins without any are omitted.
    package var activeByOrigin: [String: Int]
    /// Waiting transfers, by origin; origins without any are omitted.
    package var queuedByOrigin: [String: Int]
    /// One element per worker, by worker index.
    package var workers: [Worker]

    package init(
        active: Int = 0, queued: Int = 0, paused: Int = 0, activeByOrigin: [String: Int] = [:],
        queuedByOrigin: [String: Int] = [:], workers: [Worker] = []
    ) {
        self.active = active
        self.queued = queued
        self.paused = paused
        self.activeByOrigin = activeByOrigin
        self.queuedByOrigin = queuedByOrigin
        self.workers = workers
    }

    package var openedConnections: Int { workers.reduce(0) { $0 + $1.openedConnections } }
    package var reusedConnections: Int { workers.reduce(0) { $0 + $1.reusedConnections } }
}
