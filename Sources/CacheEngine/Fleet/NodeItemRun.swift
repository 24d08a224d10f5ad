package import CacheCore
import CacheStore
import Synchronization

/// The run of one item for another node. It ends with the last reference.
package final class NodeItemRun: Sendable {
    private enum Event: Sendable {
        /// It is time for another line.
        case tick
        case ended(PrefetchSchedule.Outcome, JobItemRecord?)
    }

    private let id: String
    private let prefetch: PrefetchQueue
    private let events: AsyncStream<Event>
    private let signal: AsyncStream<Event>.Continuation
    /// Whether the last line was returned.
    private let isOver = Atomic(false)
    /// The interval between two lines, by which routers and the other node see that the item runs.
    package static let interval = Duration.seconds(1)

    fileprivate init(_ job: JobRecord, in prefetch: PrefetchQueue) throws(CacheError) {
        id = job.id
        self.prefetch = prefetch
        let (events, signal) = AsyncStream<Event>.makeStream()
        (self.events, self.signal) = (events, signal)
        signal.yield(.tick)
        try prefetch.addGuest(job) { signal.yield(.ended($0, $1)) }
    }

    deinit { prefetch.removeGuest(id) }

    /// Causes a line.
    package func tick() { signal.yield(.tick) }

    /// Ends the lines: the other node is gone, or this one shuts down.
    package func stop() { signal.finish() }

    /// The next line; nil after the last one.
    package func next() async throws(CacheError) -> NodeItemLine? {
        guard !isOver.load(ordering: .relaxed) else { return nil }
        var iterator = events.makeAsyncIterator()
        guard let event = await iterator.next() else { return nil }
        guard case .ended(let outcome, let last) = event else {
            let item = prefetch.look { $0.items(of: id, after: -1, atMost: 1) }?.first
            var line = NodeItemLine(item)
            // A cause that this node knows already, so that the item has no run.
            if let item, item.state == .waiting, let wait = item.wait, let error = item.error {
                let time = max(.zero, wait.retryAt.since(prefetch.wallClock.now()))
                try line.end(.waiting(wait.hold, time, error))
                isOver.store(true, ordering: .relaxed)
            }
            return line
        }
        var line = NodeItemLine(last)
        try line.end(outcome)
        isOver.store(true, ordering: .relaxed)
        return line
    }
}

extension PrefetchJobs {
    /// Runs an item for another node. Throws `.overloaded` if too many run, and `.invalidField` for one that this version
    /// cannot read.
    package func run(_ request: NodeItemRequest) throws(CacheError) -> NodeItemRun {
        let job: JobRecord
        do throws(CacheError) {
            job = try request.job("node-" + random.identifier(), at: prefetch.civilClock.now())
        } catch {
            throw .invalid("item", "An item of a job is expected here: use one version of Larder in the fleet.")
        }
        return try NodeItemRun(job, in: prefetch)
    }
}
