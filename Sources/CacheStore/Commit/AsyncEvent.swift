import CacheCore

/// Manual-reset event for one waiting task: it stays open until it is closed.
final class AsyncEvent: Sendable {
    /// Guarded by `state`. The continuation is always resumed outside the lock.
    fileprivate struct State {
        var isOpen = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = OrderedMutex(.leaf, State())

    /// Opens the event and resumes the waiter.
    func open() {
        let waiter = state.withLock { state in
            state.isOpen = true
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    /// Closes the event: later calls of `wait` suspend.
    func close() { state.withLock { $0.isOpen = false } }

    /// Returns when the event is open or the task is cancelled.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // The task was cancelled before the waiter was stored: the handler ran already and found no waiter.
                    if state.isOpen || Task.isCancelled { return true }
                    state.waiter = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.takeWaiter() }?.resume()
        }
    }
}

extension AsyncEvent.State {
    /// Removes and returns the waiter; the caller resumes it after releasing the lock.
    fileprivate mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
        defer { waiter = nil }
        return waiter
    }
}
