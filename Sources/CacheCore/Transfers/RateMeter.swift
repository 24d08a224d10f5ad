import DequeModule

/// Measures the growth of a total over the last five seconds, or since the first sample if that is later.
package struct RateMeter: Hashable, Sendable {
    private struct Sample: Hashable, Sendable {
        let uptime: Duration
        let bytes: Int64
    }

    /// The time over which the rate is measured.
    private static let window = Duration.seconds(5)
    /// The shortest time between two samples.
    private static let spacing = Duration.milliseconds(100)
    private var samples: Deque<Sample> = []
    /// The total of the last call of `note`.
    private var latest: Int64 = 0

    package init() {}

    /// Records the total at an uptime; uptimes must not decrease.
    package mutating func note(_ bytes: Int64, at uptime: Duration) {
        latest = bytes
        if let last = samples.last, uptime - last.uptime < Self.spacing { return }
        samples.append(Sample(uptime: uptime, bytes: bytes))
        while samples.count > 1, samples[1].uptime <= uptime - Self.window { samples.removeFirst() }
    }

    /// The rate in bytes per second; 0 before the second sample time.
    package func bytesPerSecond(at uptime: Duration) -> Double {
        let first = samples.last { $0.uptime <= uptime - Self.window } ?? samples.first
        guard let first, uptime > first.uptime else { return 0 }
        return max(0, Double(latest - first.bytes) / (uptime - first.uptime).inSeconds)
    }
}
