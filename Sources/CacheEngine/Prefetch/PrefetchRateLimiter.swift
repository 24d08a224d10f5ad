import CacheCore

/// Rate limiter for the items of one job. Every piece waits for its time slot; unused time is not saved for bursts.
final class PrefetchRateLimiter: Sendable {
    private struct State {
        var bytesPerSecond: Int64
        /// The uptime when the next piece may start.
        var nextAt = Duration.zero
    }

    private let clock: any Clock<Duration>
    private let uptime: @Sendable () -> Duration
    /// Guards the limit, and the uptime when the next piece may start.
    private let state: OrderedMutex<State>

    init(bytesPerSecond: Int64, clock: any Clock<Duration>, uptime: @escaping @Sendable () -> Duration) {
        state = OrderedMutex(.leaf, State(bytesPerSecond: max(1, bytesPerSecond)))
        self.clock = clock
        self.uptime = uptime
    }

    /// The size in bytes of one request: about half a second at the limit, from 4 KiB to 4 MiB.
    var pieceBytes: Int64 { min(max(state.withLock(\.bytesPerSecond) / 2, 4 << 10), 4 << 20) }

    /// Changes the limit for the pieces that have no time slot yet.
    func change(to bytesPerSecond: Int64) { state.withLock { $0.bytesPerSecond = max(1, bytesPerSecond) } }

    /// Waits until `bytes` may be requested. Throws `.cancelled` if the task is cancelled meanwhile.
    func take(_ bytes: Int64) async throws(CacheError) {
        let now = uptime()
        let wait = state.withLock { state in
            let start = max(now, state.nextAt)
            state.nextAt = start + .seconds(Double(bytes) / Double(state.bytesPerSecond))
            return start - now
        }
        guard wait > .zero else { return }
        do {
            try await clock.sleep(for: wait)
        } catch {
            throw CacheError(.cancelled, "The job was stopped while it waited for its rate limit.")
        }
    }
}
