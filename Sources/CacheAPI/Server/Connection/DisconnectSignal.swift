import CacheCore

/// One-shot event: the client of a connection has disconnected. Tasks that work for the client wait for it.
///
/// A client that closed its sending side may still wait for its response (a half-closed connection). TCP does not
/// distinguish that from a closed connection until something is written. ``HTTPConnectionHandler`` therefore treats
/// such a client as disconnected when nothing could be written to it for `halfClosedTimeout`.
final class DisconnectSignal: Sendable {
    private struct State {
        var isGone = false
        /// The last key used in `waiters`.
        var lastTicket = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    /// Guards the event and its waiters.
    private let state = OrderedMutex(.leaf, State())

    /// Reports that the connection has ended or that its client is presumed gone. Resumes all waiters.
    func left() {
        let waiters = state.withLock { state in
            state.isGone = true
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the client has disconnected or the task is cancelled.
    ///
    /// Registration and cancellation can race:
    /// 1. The task is cancelled; `onCancel` finds no waiter for the ticket.
    /// 2. The registration follows. It checks `Task.isCancelled` under the same lock and resumes at once.
    ///
    /// In the other order `onCancel` finds the waiter and resumes it. The waiter is removed first, so that
    /// ``left()`` cannot resume it a second time.
    func gone() async {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isGone || Task.isCancelled { return true }
                    state.waiters[ticket] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: ticket) }?.resume()
        }
    }
}
