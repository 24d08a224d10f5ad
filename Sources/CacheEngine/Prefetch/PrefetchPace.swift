import CacheCore
import Synchronization

/// Holds the items of one job to a rate: every piece waits for its time, and nothing is saved up.
final class PrefetchPace: Sendable {
    private let bytesPerSecond: Int64
    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    /// When the next piece may begin.
    private let nextAt = Mutex(Duration.zero)

    init(bytesPerSecond: Int64, clock: any Clock<Duration>, uptime: @escaping @Sendable () -> Duration) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        self.clock = clock
        self.uptime = uptime
    }

    /// How much to ask for at once: about half a second's worth.
    var pieceBytes: Int64 { min(max(bytesPerSecond / 2, 4 << 10), 4 << 20) }

    /// Waits until `bytes` may be asked for; throws `.cancelled` where the task is cancelled meanwhile.
    func take(_ bytes: Int64) async throws(CacheError) {
        let now = uptime()
        let wait = nextAt.withLock { nextAt in
            let start = max(now, nextAt)
            nextAt = start + .seconds(Double(bytes) / Double(bytesPerSecond))
            return start - now
        }
        guard wait > .zero else { return }
        do {
            try await clock.sleep(for: wait)
        } catch {
            throw CacheError(.cancelled, "The job was stopped while it kept to its rate.")
        }
    }
}
