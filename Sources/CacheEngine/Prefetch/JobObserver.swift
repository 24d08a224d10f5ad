import CacheCore

/// Observer of one job: reads the job's state after each change signal. Signals are coalesced, so a slow observer
/// skips intermediate states, but never the last one.
final class JobObserver: Sendable {
    private struct State {
        var lastVersion: Int64?
        var isOver = false
    }

    private let id: String
    private let queue: PrefetchQueue
    /// Yields after each change of the job; it buffers one signal.
    private let signal: AsyncStream<Void>
    private let token: UInt64
    /// Guards the version last returned, and whether the finished job was returned.
    private let state = OrderedMutex(.leaf, State())

    init(_ id: String, in queue: PrefetchQueue) {
        self.id = id
        self.queue = queue
        (signal, token) = queue.watch(id)
    }

    deinit { queue.unwatch(id, token) }

    /// The next state that differs from the last one returned. Nil after the finished job, or if the job cannot be
    /// read.
    func next() async -> JobSnapshot? {
        while !state.withLock({ $0.isOver }) {
            // A catalog error ends the stream; the client's next request reports the error.
            guard var snapshot = try? await queue.job(id) else { return nil }
            let isFinished = snapshot.record.state.isFinished
            let last = state.withLock { $0.lastVersion }
            if isFinished || snapshot.version > last ?? .min {
                // A finished job may come from the catalog, which may state a lower version: versions of one stream
                // always increase.
                snapshot.version = max(snapshot.version, (last ?? .min) &+ 1)
                state.withLock { $0 = State(lastVersion: snapshot.version, isOver: isFinished) }
                return snapshot
            }
            var rings = signal.makeAsyncIterator()
            guard await rings.next() != nil else { return nil }
        }
        return nil
    }
}
