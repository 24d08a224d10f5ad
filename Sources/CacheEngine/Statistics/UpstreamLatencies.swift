package import CacheCore

/// Histograms of upstream transfers by origin, of job items and of catalog commits.
package final class UpstreamLatencies: Sendable {
    /// The histograms of one origin.
    private struct Histograms {
        let firstByte = Histogram(.seconds, shards: 1)
        let rate = Histogram(.bytesPerSecond, shards: 1)
    }

    /// Guards the histograms of each origin.
    private let origins = OrderedMutex<[String: Histograms]>(.leaf, [:])
    private let items = Histogram(.seconds, shards: 1)
    private let commits = Histogram(.seconds, shards: 1)
    /// Guards the number of items of ended jobs by state.
    private let endedItems = OrderedMutex<[JobState: Int64]>(.leaf, [:])

    init() {}

    private func histograms(of origin: String) -> Histograms {
        origins.withLock { origins in
            if let known = origins[origin] { return known }
            let new = Histograms()
            origins[origin] = new
            return new
        }
    }

    /// An upstream answered a request after this time.
    func answered(origin: String, after time: Duration) { histograms(of: origin).firstByte.record(time.inSeconds) }

    /// A transfer brought `bytes` in `time`, counted from its response head. Short transfers are left out: their rate
    /// says little.
    func transferred(origin: String, bytes: Int64, in time: Duration) {
        guard bytes >= Self.leastBytes, time > .zero else { return }
        histograms(of: origin).rate.record(Double(bytes) / time.inSeconds)
    }

    /// The minimum size in bytes of a transfer with a recorded rate.
    private static let leastBytes: Int64 = 64 << 10

    /// An item of a prefetch job ended.
    func itemEnded(after time: Duration) { items.record(time.inSeconds) }

    /// A job of this node ended.
    func jobEnded(_ tally: JobTally) {
        endedItems.withLock { counts in
            for state in JobState.endsOfItems { counts[state, default: 0] += Int64(tally[state]) }
        }
    }

    /// The catalog committed work.
    func committed(in time: Duration) { commits.record(time.inSeconds) }

    /// The counts so far.
    package var snapshot: UpstreamLatencySnapshot {
        let known = origins.withLock { $0 }
        return UpstreamLatencySnapshot(
            firstByte: known.mapValues(\.firstByte.snapshot), rate: known.mapValues(\.rate.snapshot),
            items: items.snapshot, commits: commits.snapshot, endedItems: endedItems.withLock { $0 })
    }
}

/// The histograms of upstream transfers, job items and commits at one moment.
package struct UpstreamLatencySnapshot: Sendable {
    /// Times from the request to the response head, by origin.
    package var firstByte: [String: HistogramSnapshot]
    /// Transfer rates in bytes per second, by origin.
    package var rate: [String: HistogramSnapshot]
    /// Durations of job items.
    package var items: HistogramSnapshot
    /// Durations of catalog commits.
    package var commits: HistogramSnapshot
    /// The number of items of ended jobs by state.
    package var endedItems: [JobState: Int64] = [:]
}
