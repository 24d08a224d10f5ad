package import CacheCore
import DequeModule

/// Asynchronous mutex: one task at a time, in order of arrival. Waiting tasks are suspended and block no thread.
package final class AsyncMutex: Sendable {
    /// Invariant: while tasks wait, the mutex is taken.
    private struct State {
        var isTaken = false
        var waiting: Deque<CheckedContinuation<Void, Never>> = []
    }

    /// Guards the owner flag and the queue of waiting tasks.
    private let state = OrderedMutex(.leaf, State())

    package init() {}

    /// Runs `body` while no other task holds the mutex. Not reentrant: a nested call would wait forever. A wait cannot
    /// be cancelled.
    package func pass<Value: Sendable>(
        _ body: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        await take()
        defer { give() }
        return try await body()
    }

    /// Waits for the mutex and takes it.
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

    /// Passes the mutex to the next waiting task. It stays taken meanwhile, so no later task can overtake.
    private func give() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            state.isTaken = next != nil
            return next
        }
        next?.resume()
    }
}
