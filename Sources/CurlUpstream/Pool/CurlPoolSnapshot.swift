/// State of a `CurlWorkerPool` at one moment, for statistics.
package struct CurlPoolSnapshot: Hashable, Sendable {
    /// Counters of one worker thread.
    package struct Worker: Hashable, Sendable {
        /// Transfers in progress.
        package var active = 0
        /// Completed transfers since the start, including failed ones.
        package var ended = 0
        /// Requests sent on a connection that already existed.
        package var reusedConnections = 0
        /// Connections opened since the start.
        package var openedConnections = 0
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
}
