import CacheCore

/// Remembers the counters last written to the history, so that each increase is written once.
final class StatsRecorder: Sendable {
    /// Guards the counters last written, by origin.
    private let written = OrderedMutex<[String: TrafficFigures]>(.leaf, [:])
    /// Guards the time of the last write.
    private let lastAt = OrderedMutex<Timestamp?>(.leaf, nil)

    /// The time for a write at `now`. It is unique: if two writes would have the same time, the second gets a later
    /// one.
    func instant(at now: Timestamp) -> Timestamp {
        lastAt.withLock { last in
            var instant = now
            if let last, last >= now, last < now + .seconds(1) { instant = last + .milliseconds(1) }
            last = instant
            return instant
        }
    }

    /// `counted` has been written to the history.
    func wrote(_ counted: [String: TrafficFigures]) { written.withLock { $0 = counted } }

    /// The increase of each origin's counters since the last write; origins without an increase are left out.
    func pending(of counted: [String: TrafficFigures]) -> [(origin: String, increase: TrafficFigures)] {
        let before = written.withLock { $0 }
        return counted.compactMap { origin, figures in
            var increase = figures
            increase.subtract(before[origin] ?? TrafficFigures())
            return increase == TrafficFigures() ? nil : (origin, increase)
        }
    }
}
