import CacheCore
import Dispatch
import Synchronization

/// What was read of which asset, for those who ask what another policy would have made of it; in memory only.
final class ReadLog: Sendable {
    private struct Note: Sendable {
        var run: ByteRange
        var asset: AssetID
        var at: Timestamp
    }

    /// What was read and is not in the trace yet. It goes there several at a time, and later where the trace is in others' hands:
    /// who reads does not wait for it.
    private let notes = Shards { [Note]() }
    /// From so many of one shard on they go; so many are waited for.
    private static let many = 16
    private static let most = 4096
    /// After so long all go, if anything is read.
    private static let longestMilliseconds: Int64 = 1000
    /// When all shards were last brought, in milliseconds.
    private let broughtAt: Atomic<Int64>
    let trace: Mutex<ReadTrace>
    private let wallClock: any WallClock
    /// Plays are made here: they take a processor for seconds.
    private let queue = DispatchQueue(label: "larder.trials", qos: .utility)

    init(wallClock: any WallClock) {
        self.wallClock = wallClock
        let now = wallClock.now()
        broughtAt = Atomic(now.milliseconds)
        trace = Mutex(ReadTrace(epoch: now))
    }

    func note(_ run: ByteRange, of asset: AssetID) { note(run, of: asset, at: wallClock.now()) }

    /// Reads of one asset stay in their order; those of different ones may change places within a second.
    func note(_ run: ByteRange, of asset: AssetID, at time: Timestamp) {
        if isDue(at: time) { _ = notes.map { bring(&$0) } }
        notes[asset].value.withLock { notes in
            notes.append(Note(run: run, asset: asset, at: time))
            if notes.count >= Self.many { bring(&notes) }
        }
    }

    /// Whether all are to be brought, and by the caller.
    private func isDue(at time: Timestamp) -> Bool {
        let last = broughtAt.load(ordering: .relaxed)
        guard abs(time.milliseconds - last) >= Self.longestMilliseconds else { return false }
        return broughtAt.compareExchange(expected: last, desired: time.milliseconds, ordering: .relaxed).exchanged
    }

    /// Under the lock of their shard, or the next ones could be faster.
    private func bring(_ notes: inout [Note], isAwaited: Bool = false) {
        guard !notes.isEmpty else { return }
        func add(to trace: inout ReadTrace) {
            for note in notes { trace.note(note.run, of: note.asset, at: note.at) }
        }
        if isAwaited || notes.count >= Self.most {
            trace.withLock { add(to: &$0) }
        } else if trace.withLockIfAvailable({ add(to: &$0) }) == nil {
            return
        }
        notes.removeAll(keepingCapacity: notes.capacity <= 4 * Self.many)
    }

    /// What `body` makes of the reads up to now, one after the other and away from those who serve.
    func play<Value: Sendable>(_ body: @escaping @Sendable (ReadTrace) -> Value) async -> Value {
        _ = notes.map { bring(&$0, isAwaited: true) }
        let trace = trace.withLock { $0 }
        return await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body(trace)) }
        }
    }
}
