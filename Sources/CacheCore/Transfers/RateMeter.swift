import DequeModule

/// How fast a total has grown lately: over the last five seconds, or since the beginning where that is less.
package struct RateMeter: Hashable, Sendable {
    private struct Sample: Hashable, Sendable {
        let uptime: Duration
        let bytes: Int64
    }

    private static let window = Duration.seconds(5)
    private static let spacing = Duration.milliseconds(100)
    private var samples: Deque<Sample> = []
    private var latest: Int64 = 0

    package init() {}

    /// The total at a time; times must not go back.
    package mutating func note(_ bytes: Int64, at uptime: Duration) {
        latest = bytes
        if let last = samples.last, uptime - last.uptime < Self.spacing { return }
        samples.append(Sample(uptime: uptime, bytes: bytes))
        while samples.count > 1, samples[1].uptime <= uptime - Self.window { samples.removeFirst() }
    }

    package func bytesPerSecond(at uptime: Duration) -> Double {
        let first = samples.last { $0.uptime <= uptime - Self.window } ?? samples.first
        guard let first, uptime > first.uptime else { return 0 }
        return max(0, Double(latest - first.bytes) / (uptime - first.uptime).inSeconds)
    }
}
