package import CacheCore

/// Histograms of content requests by result: time to the first byte and total time.
package final class RequestLatencies: Sendable {
    private let wallClock: any WallClock
    private let firstBytes = RequestLatencies.histograms()
    private let durations = RequestLatencies.histograms()
    /// Guards the histogram of each origin.
    private let origins = OrderedMutex<[String: Histogram]>(.leaf, [:])

    init(wallClock: any WallClock) { self.wallClock = wallClock }

    private static func histograms() -> [Histogram] { ReadOutcome.Class.allCases.map { _ in Histogram(.seconds) } }

    /// Records an ended request.
    ///
    /// - Parameters:
    ///   - firstByte: The time from the request's head to the first byte of the response body; nil without a body.
    ///   - shard: Any number that differs between threads.
    ///   - traceID: The trace of the request if it is sampled; it becomes an exemplar.
    package func record(
        _ result: ReadOutcome.Class, firstByte: Duration?, duration: Duration, shard: Int, traceID: String? = nil
    ) {
        record(duration, in: durations[result.index], shard: shard, traceID)
        if let firstByte { record(firstByte, in: firstBytes[result.index], shard: shard, traceID) }
    }

    private func record(_ time: Duration, in histogram: Histogram, shard: Int, _ traceID: String?) {
        let seconds = time.inSeconds
        let exemplar = traceID.map { Histogram.Exemplar(value: seconds, traceID: $0, at: wallClock.now()) }
        histogram.record(seconds, shard: shard, exemplar: exemplar)
    }

    /// The times to the first byte of one origin. Callers with many requests may keep it.
    package func firstBytes(of origin: String) -> Histogram {
        origins.withLock { origins in
            if let known = origins[origin] { return known }
            let new = Histogram(.seconds, shards: 4)
            origins[origin] = new
            return new
        }
    }

    /// The counts so far, in the order of `ReadOutcome.Class.allCases`.
    package var snapshot: RequestLatencySnapshot {
        var snapshot = snapshotWithoutOrigins
        snapshot.origins = origins.withLock { $0 }.mapValues(\.snapshot)
        return snapshot
    }

    /// The same without ``RequestLatencySnapshot/origins``; its cost does not grow with their number.
    var snapshotWithoutOrigins: RequestLatencySnapshot {
        RequestLatencySnapshot(firstBytes: firstBytes.map(\.snapshot), durations: durations.map(\.snapshot))
    }
}

/// The histograms of content requests at one moment, in the order of `ReadOutcome.Class.allCases`.
package struct RequestLatencySnapshot: Sendable {
    package var firstBytes: [HistogramSnapshot]
    package var durations: [HistogramSnapshot]
    /// The times to the first byte by origin.
    package var origins: [String: HistogramSnapshot] = [:]

    /// The times to the first byte of all results together.
    package var firstByte: HistogramSnapshot {
        firstBytes.dropFirst().reduce(firstBytes[0]) { $0.adding($1) }
    }
}

extension ReadOutcome.Class {
    /// The position in `allCases`.
    var index: Int {
        switch self {
        case .hit: 0
        case .partial: 1
        case .miss: 2
        case .revalidated: 3
        case .stale: 4
        case .negative: 5
        case .bypass: 6
        case .error: 7
        }
    }
}
