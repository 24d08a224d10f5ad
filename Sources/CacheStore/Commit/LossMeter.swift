import CacheCore
import Synchronization

/// Measures the loss window of commits, which are made one after the other.
final class LossMeter: Sendable {
    private struct State {
        var longest = Duration.zero
        /// What the commit that is being made is to claim.
        var bytes: Int64 = 0
        var since: ContinuousClock.Instant?
    }

    private let state = Mutex(State())

    func begin(_ work: PendingWork) {
        state.withLock { ($0.bytes, $0.since) = (work.byteCount, work.waitingSince) }
    }

    /// The commit is made, or what it was to claim is pending again.
    func end(isMade: Bool) {
        state.withLock { state in
            if isMade, let since = state.since { state.longest = max(state.longest, ContinuousClock.now - since) }
            (state.bytes, state.since) = (0, nil)
        }
    }

    func window(pending bytes: Int64, since: ContinuousClock.Instant?) -> LossWindow {
        state.withLock { state in
            let age = (state.since ?? since).map { ContinuousClock.now - $0 } ?? .zero
            var window = LossWindow()
            (window.bytes, window.age, window.longest) = (state.bytes + bytes, age, max(state.longest, age))
            return window
        }
    }
}
