import CacheCore
import DequeModule
import Synchronization

/// Lets one through at a time, in the order they came; the others wait without a thread.
final class PrefetchTurn: Sendable {
    private struct State {
        var isTaken = false
        var waiting: Deque<CheckedContinuation<Void, Never>> = []
    }

    private let state = Mutex(State())

    /// Runs `body` while nobody else is let through. Not to be called from inside one.
    func pass<Value: Sendable>(
        _ body: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        await take()
        defer { give() }
        return try await body()
    }

    private func take() async {
        await withCheckedContinuation { continuation in
            let isMine = state.withLock { state in
                if state.isTaken {
                    state.waiting.append(continuation)
                    return false
                }
                state.isTaken = true
                return true
            }
            if isMine { continuation.resume() }
        }
    }

    private func give() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            state.isTaken = next != nil
            return next
        }
        next?.resume()
    }
}
