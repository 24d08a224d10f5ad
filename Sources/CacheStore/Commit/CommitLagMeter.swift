import CacheCore

/// Measures the commit lag: the bytes and the time that a crash would lose. Commits run one at a time.
final class CommitLagMeter: Sendable {
    /// Guarded by `state`.
    private struct State {
        /// The longest lag so far.
        var longest = Duration.zero
        /// Bytes that the running commit will claim.
        var bytes: Int64 = 0
        /// Uptime of the oldest report in the running commit; nil if no commit with bytes runs.
        var since: Duration?
    }

    private let state = OrderedMutex(.leaf, State())
    /// The time since any start.
    let uptime: @Sendable () -> Duration

    init(uptime: @escaping @Sendable () -> Duration) { self.uptime = uptime }

    /// Starts a commit of this work.
    func begin(_ work: PendingWork) {
        state.withLock { ($0.bytes, $0.since) = (work.byteCount, work.waitingSince) }
    }

    /// Ends the running commit. If it failed, its bytes are pending again.
    func end(isMade: Bool) {
        state.withLock { state in
            if isMade, let since = state.since { state.longest = max(state.longest, uptime() - since) }
            (state.bytes, state.since) = (0, nil)
        }
    }

    /// Returns the current lag, including the running commit and the pending work.
    func window(pending bytes: Int64, since: Duration?) -> CommitLag {
        state.withLock { state in
            let age = (state.since ?? since).map { uptime() - $0 } ?? .zero
            var window = CommitLag()
            (window.bytes, window.age, window.longest) = (state.bytes + bytes, age, max(state.longest, age))
            return window
        }
    }
}
