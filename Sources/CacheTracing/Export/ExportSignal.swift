import CacheCore

/// Wakes the exporter when a batch is complete or the service stops.
final class ExportSignal: Sendable {
    /// The event that a wait ends with. A stop ends all waits.
    enum Event { case batch, stop }

    private struct State: Sendable {
        var isBatchReady = false
        /// The time since the stop; nil before.
        var sinceStop: (@Sendable () -> Duration)?
    }

    private let state = AsyncCondition(State())

    /// Ends the waits for a batch, or the next one.
    func batchIsReady() { state.change { $0.isBatchReady = true } }

    /// Ends all waits; `stopwatch` measures the time since the stop. Further calls have no effect.
    func stop(_ stopwatch: @escaping @Sendable () -> Duration) {
        state.change { $0.sinceStop = $0.sinceStop ?? stopwatch }
    }

    /// The time since the stop; nil before.
    var sinceStop: Duration? { state.state.sinceStop.map { $0() } }

    var isStopped: Bool { state.state.sinceStop != nil }

    /// Returns on the event, after `limit`, or if the task is cancelled. A complete batch is reported once.
    func wait(for event: Event, within limit: Duration, clock: any Clock<Duration>) async {
        await withTaskGroup(of: Void.self) { group in
            // The only error is the cancellation; it ends the wait.
            group.addTask { try? await clock.sleep(for: limit) }
            group.addTask { await self.wait(for: event) }
            await group.next()
            group.cancelAll()
        }
    }

    private func wait(for event: Event) async {
        _ = await state.valueUnlessCancelled { state -> Void? in
            let isReady = event == .batch && state.isBatchReady
            if isReady { state.isBatchReady = false }
            return isReady || state.sinceStop != nil ? () : nil
        }
    }
}
