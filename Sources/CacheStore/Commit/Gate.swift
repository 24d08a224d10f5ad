import Synchronization

/// A flag that one task waits for; it stays open until it is closed.
final class Gate: Sendable {
    fileprivate struct State {
        var isOpen = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func open() {
        let waiter = state.withLock { state in
            state.isOpen = true
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    func close() { state.withLock { $0.isOpen = false } }

    /// Returns when the gate is open, or the task is cancelled.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // Cancelled before now: the handler has run, and found nobody.
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

extension Gate.State {
    fileprivate mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
        defer { waiter = nil }
        return waiter
    }
}
