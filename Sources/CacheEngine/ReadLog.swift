import CacheCore
import Dispatch
import Synchronization

/// What was read of which asset, for those who ask what another policy would have made of it; in memory only.
final class ReadLog: Sendable {
    private let trace: Mutex<ReadTrace>
    private let wallClock: any WallClock
    /// Plays are made here: they take a processor for seconds.
    private let queue = DispatchQueue(label: "larder.trials", qos: .utility)

    init(wallClock: any WallClock) {
        self.wallClock = wallClock
        trace = Mutex(ReadTrace(epoch: wallClock.now()))
    }

    func note(_ run: ByteRange, of asset: AssetID) { note(run, of: asset, at: wallClock.now()) }

    func note(_ run: ByteRange, of asset: AssetID, at time: Timestamp) {
        trace.withLock { $0.note(run, of: asset, at: time) }
    }

    /// What `body` makes of the reads up to now, one after the other and away from those who serve.
    func play<Value: Sendable>(_ body: @escaping @Sendable (ReadTrace) -> Value) async -> Value {
        let trace = trace.withLock { $0 }
        return await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body(trace)) }
        }
    }
}
