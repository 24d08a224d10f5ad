import CacheCore
import Synchronization

/// One who follows a job: asks for its present state whenever a bell rings, so that a slow follower misses steps in
/// between but never the last.
final class JobWatch: Sendable {
    private struct State {
        var lastVersion: Int64?
        var isOver = false
    }

    private let id: String
    private let queue: PrefetchQueue
    private let bell: AsyncStream<Void>
    private let token: UInt64
    private let state = Mutex(State())

    init(_ id: String, in queue: PrefetchQueue) {
        self.id = id
        self.queue = queue
        (bell, token) = queue.watch(id)
    }

    deinit { queue.unwatch(id, token) }

    /// The next state that differs from the last one told; nil after the finished one, or where the job is gone.
    func next() async -> JobSnapshot? {
        while !state.withLock({ $0.isOver }) {
            // A catalog that cannot be read ends the stream: the follower asks again, and is told why.
            guard var snapshot = try? await queue.job(id) else { return nil }
            let isFinished = snapshot.record.state.isFinished
            let last = state.withLock { $0.lastVersion }
            if isFinished || snapshot.version > last ?? .min {
                snapshot.version = max(snapshot.version, (last ?? .min) &+ 1)
                state.withLock { $0 = State(lastVersion: snapshot.version, isOver: isFinished) }
                return snapshot
            }
            var rings = bell.makeAsyncIterator()
            guard await rings.next() != nil else { return nil }
        }
        return nil
    }
}
