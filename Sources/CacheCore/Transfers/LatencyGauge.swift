/// Measures the time to the first byte of an origin, from its latest responses.
package struct LatencyGauge: Hashable, Sendable {
    /// The number of responses that are kept.
    package static let capacity = 256
    /// The smallest number of responses for a percentile.
    package static let least = 20

    private var samples: [Duration] = []
    /// The index that the next sample replaces once all of `capacity` are used.
    private var next = 0

    package init() {}

    /// Records the latency of a response.
    package mutating func note(_ latency: Duration) {
        guard samples.count == Self.capacity else { return samples.append(latency) }
        samples[next] = latency
        next = (next + 1) % Self.capacity
    }

    /// The latency that the fraction `share` (0...1) of the responses did not exceed, by nearest rank; nil below
    /// `least` responses.
    package func percentile(_ share: Double) -> Duration? {
        guard samples.count >= Self.least else { return nil }
        let rank = Int((share * Double(samples.count)).rounded(.up))
        return samples.sorted()[min(max(rank, 1), samples.count) - 1]
    }
}
