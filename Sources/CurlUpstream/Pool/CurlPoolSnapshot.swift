/// What a pool of curl workers is doing at one moment.
package struct CurlPoolSnapshot: Hashable, Sendable {
    package struct Worker: Hashable, Sendable {
        /// Transfers under way.
        package var active = 0
        /// Transfers that have ended.
        package var ended = 0
        /// Requests sent on a connection that was already open.
        package var reusedConnections = 0
        /// Connections opened.
        package var openedConnections = 0
    }

    /// Transfers under way.
    package var active: Int
    /// Transfers that wait for a place or a time, those that go on after a pause among them.
    package var queued: Int
    /// Transfers that are paused, and have no place.
    package var paused: Int
    package var activeByOrigin: [String: Int]
    package var queuedByOrigin: [String: Int]
    package var workers: [Worker]
}
