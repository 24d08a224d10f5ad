import CacheCore

/// Wakes the exporter when a batch is complete or the service stops.
final class ExportSignal: Sendable {
    /// The event that a wait ends with. A stop ends all waits.
    enum Event { case batch, stop }

    private struct State {
        var isBatchReady = false
        /// The time since the stop; nil before.
        var sinceStop: (@Sendable () -> Duration)?
        var waiters: [Int: (event: Event, continuation: CheckedContinuation<Void, Never>)] = [:]
        var nextWaiter = 0
    }

    /// Guards the state. Continuations are resumed outside the lock.
    private let state = OrderedMutex(.leaf, State())

    /// Ends the waits for a batch, or the next one.
    func batchIsReady() {
        resume { state in
            state.isBatchReady = true
            return { $0 == .batch }
        }
    }

    /// Ends all waits; `stopwatch` measures the time since the stop. Further calls have no effect.
    func stop(_ stopwatch: @escaping @Sendable () -> Duration) {
        resume { state in
            if state.sinceStop == nil { state.sinceStop = stopwatch }
            return { _ in true }
        }
    }

    /// The time since the stop; nil before.
    var sinceStop: Duration? { state.withLock { $0.sinceStop }.map { $0() } }

    var isStopped: Bool { state.withLock { $0.sinceStop != nil } }

    /// Returns on the event, after `limit`, or if the task is cancelled.
    func wait(for event: Event, within limit: Duration, clock: any Clock<Duration>) async {
        await withTaskGroup(of: Void.self) { group in
            // The only error is the cancellation; it ends the wait.
            group.addTask { try? await clock.sleep(for: limit) }
            group.addTask { await self.wait(for: event) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Returns on the event, or if the task is cancelled. A complete batch is reported once.
    func wait(for event: Event) async {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    // The task was cancelled before the waiter was stored: the handler ran already and found no waiter.
                    guard !Task.isCancelled, state.sinceStop == nil, !(event == .batch && state.isBatchReady) else {
                        return true
                    }
                    state.waiters[waiter] = (event, continuation)
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.continuation.resume()
        }
        if event == .batch { state.withLock { $0.isBatchReady = false } }
    }

    /// Changes the state, and resumes the waiters for which the returned function is true.
    private func resume(_ change: (inout State) -> (Event) -> Bool) {
        let woken = state.withLock { state in
            let isWoken = change(&state)
            let woken = state.waiters.filter { isWoken($0.value.event) }
            for waiter in woken.keys { state.waiters[waiter] = nil }
            return woken.values.map(\.continuation)
        }
        for continuation in woken { continuation.resume() }
    }
}
