import Synchronization

/// Whether the client of a connection is still there, for those who wait on its behalf.
///
/// A client that closed its sending side may still wait for its answer, but over TCP that cannot be told from a closed
/// connection until something is written: it counts as gone when there was nothing to write to it for a while.
final class ClientPresence: Sendable {
    private struct State {
        var isGone = false
        var lastTicket = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    /// The connection the running request came on; nil where there is none (tests that call routes directly).
    @TaskLocal static var current: ClientPresence?

    private let state = Mutex(State())

    /// The connection has ended, or nobody seems to be at its other end.
    func left() {
        let waiters = state.withLock { state in
            state.isGone = true
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the client has gone, or the task is cancelled.
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
