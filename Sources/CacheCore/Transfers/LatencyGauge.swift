/// How long an origin takes to its first byte, by its latest answers.
package struct LatencyGauge: Hashable, Sendable {
    /// Answers that are remembered.
    package static let capacity = 256
    /// Answers without which nothing is said.
    package static let least = 20

    private var samples: [Duration] = []
    /// Where the next one goes, once all places are taken.
    private var next = 0

    package init() {}

    package mutating func note(_ latency: Duration) {
        guard samples.count == Self.capacity else { return samples.append(latency) }
        samples[next] = latency
        next = (next + 1) % Self.capacity
    }

    /// The latency that `share` (in 0...1) of the answers did not exceed; nil while too few are known.
    package func percentile(_ share: Double) -> Duration? {
        guard samples.count >= Self.least else { return nil }
        let rank = Int((share * Double(samples.count)).rounded(.up))
        return samples.sorted()[min(max(rank, 1), samples.count) - 1]
    }
}
