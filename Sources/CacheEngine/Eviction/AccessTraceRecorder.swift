import CacheCore
import CacheSimulation
import Dispatch
import Synchronization

/// Records which ranges of which assets were read, as input for policy simulations; in memory only.
///
/// Reads are buffered by shard and moved to the trace in batches. If the trace is locked, a batch waits for a later
/// read: recording never blocks a reader, unless a shard's buffer is full.
final class AccessTraceRecorder: Sendable {
    /// One read of a run.
    private struct Note: Sendable {
        var run: ByteRange
        var asset: AssetID
        var at: Timestamp
    }

    /// Each shard's lock guards its reads that are not in the trace yet.
    private let notes = Sharded(.recentReads) { [Note]() }
    /// The batch size: from this number on, a shard's reads are moved to the trace.
    private static let many = 16
    /// The buffer limit per shard: from this number on, the recorder waits for the trace.
    private static let most = 4096
    /// The interval after which all shards are flushed by the next read.
    private static let longestMilliseconds: Int64 = 1000
    /// The time of the last flush of all shards, in milliseconds since 1970.
    private let broughtAt: Atomic<Int64>
    /// Guards the trace.
    let trace: OrderedMutex<ReadTrace>
    private let wallClock: any WallClock
    /// Simulations run on this queue, because each occupies a processor for seconds.
    private let queue = DispatchQueue(label: "larder.trials", qos: .utility)

    init(wallClock: any WallClock) {
        self.wallClock = wallClock
        let now = wallClock.now()
        broughtAt = Atomic(now.milliseconds)
        trace = OrderedMutex(.accessTrace, ReadTrace(epoch: now))
    }

    /// Records a read of `run` that ends now.
    func note(_ run: ByteRange, of asset: AssetID) { note(run, of: asset, at: wallClock.now()) }

    /// Records a read of `run`. Reads of one asset keep their order; reads of different assets may be reordered within
    /// a second.
    func note(_ run: ByteRange, of asset: AssetID, at time: Timestamp) {
        if isDue(at: time) { _ = notes.map { bring(&$0) } }
        notes[asset].value.withLock { notes in
            notes.append(Note(run: run, asset: asset, at: time))
            if notes.count >= Self.many { bring(&notes) }
        }
    }

    /// Whether all shards are due for a flush. Only one of several concurrent callers gets true.
    private func isDue(at time: Timestamp) -> Bool {
        let last = broughtAt.load(ordering: .relaxed)
        guard abs(time.milliseconds - last) >= Self.longestMilliseconds else { return false }
        return broughtAt.compareExchange(expected: last, desired: time.milliseconds, ordering: .relaxed).exchanged
    }

    /// Moves the buffered reads of a shard to the trace. The shard's lock must be held, because later reads could
    /// otherwise overtake these. Does nothing if the trace is locked, unless `isAwaited` or the buffer is full.
    private func bring(_ notes: inout [Note], isAwaited: Bool = false) {
        guard !notes.isEmpty else { return }
        func add(to trace: inout ReadTrace) {
            for note in notes { trace.note(note.run, of: note.asset, at: note.at) }
        }
        // Lock order: a shard, then the trace.
        if isAwaited || notes.count >= Self.most {
            trace.withLock { add(to: &$0) }
        } else if trace.withLockIfAvailable({ add(to: &$0) }) == nil {
            return
        }
        notes.removeAll(keepingCapacity: notes.capacity <= 4 * Self.many)
    }

    /// Runs `body` on a copy of the trace with all reads so far. Calls run one at a time, on a queue of their own.
    func play<Value: Sendable>(_ body: @escaping @Sendable (ReadTrace) -> Value) async -> Value {
        _ = notes.map { bring(&$0, isAwaited: true) }
        let trace = trace.withLock { $0 }
        return await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body(trace)) }
        }
    }
}
