import CacheCore

/// Monotonic clock that advances only on `advance(by:)`, which ends the sleeps that are due.
package final class ManualClock: Clock {
    package struct Instant: InstantProtocol {
        var offset: Duration = .zero

        package func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        package func duration(to other: Instant) -> Duration { other.offset - offset }
        package static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant()
        /// The deadlines of the sleeps.
        var sleeps: [Int: Instant] = [:]
        var lastSleep = 0
    }

    private let state = AsyncCondition(State(), rank: .system)

    package init() {}

    package var now: Instant { state.state.now }
    package var minimumResolution: Duration { .zero }

    /// The remaining times of all sleeps, the shortest first.
    package var sleeps: [Duration] {
        let state = state.state
        return state.sleeps.values.map { state.now.duration(to: $0) }.sorted()
    }

    package func advance(by duration: Duration) { state.change { $0.now = $0.now.advanced(by: duration) } }

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = state.change { state in
            state.lastSleep += 1
            state.sleeps[state.lastSleep] = deadline
            return state.lastSleep
        }
        let isOver: Void? = await state.valueUnlessCancelled { state -> Void? in
            guard state.now >= deadline else { return nil }
            state.sleeps[number] = nil
            return ()
        }
        guard isOver == nil else { return }
        state.change { $0.sleeps[number] = nil }
        throw CancellationError()
    }
}
