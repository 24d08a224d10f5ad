import Synchronization

/// Histogram with fixed bucket bounds. Threads record without a lock: two relaxed atomic additions in one of several
/// shards.
package final class Histogram: Sendable {
    /// The bucket bounds of a histogram, in ascending order, and the scale of its sum.
    package struct Bounds: Hashable, Sendable {
        /// The upper bound of each bucket but the last; it has none.
        package let values: [Double]
        /// The sum is kept in units of 1 ÷ `scale`, rounded down.
        let scale: Double

        /// Times in seconds from 0.5 ms to 60 s.
        package static let seconds = Bounds(
            values: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
            scale: 1e9)
        /// Rates from 64 KiB/s to 1 GiB/s, in bytes per second.
        package static let bytesPerSecond = Bounds(values: (0..<8).map { Double(65536 << (2 * $0)) }, scale: 1)
    }

    /// The counts of one shard. Shards are separate objects, so that they rarely share a cache line.
    private final class Shard: Sendable {
        /// Space for the buckets of any `Bounds`, without padding between them.
        let counts: [17 of Atomic<UInt64>]
        let sum = Atomic<UInt64>(0)

        init() { counts = InlineArray { _ in Atomic<UInt64>(0) } }
    }

    /// A value with the trace that it belongs to.
    package struct Exemplar: Hashable, Sendable {
        package var value: Double
        /// 32 lower-case hexadecimal digits.
        package var traceID: String
        package var at: Timestamp

        package init(value: Double, traceID: String, at: Timestamp) {
            self.value = value
            self.traceID = traceID
            self.at = at
        }
    }

    package let bounds: Bounds
    private let shards: [Shard]
    /// Guards the last exemplar of each bucket. Only values of sampled traces have one.
    private let exemplars = OrderedMutex<[Int: Exemplar]>(.leaf, [:])

    /// - Parameter shards: The number of shards; 1 for values that are recorded rarely.
    package init(_ bounds: Bounds, shards: Int = 8) {
        precondition(bounds.values.count < 17)
        self.bounds = bounds
        self.shards = (0..<shards).map { _ in Shard() }
    }

    /// Records one value. A negative value counts as zero.
    ///
    /// - Parameter shard: Any number that differs between threads or assets that record at the same time.
    package func record(_ value: Double, shard: Int = 0, exemplar: Exemplar? = nil) {
        let value = max(0, value)
        var bucket = 0
        while bucket < bounds.values.count, value > bounds.values[bucket] { bucket += 1 }
        if let exemplar { exemplars.withLock { $0[bucket] = exemplar } }
        let shard = shards[Int(UInt(bitPattern: shard) % UInt(shards.count))]
        shard.counts[bucket].wrappingAdd(1, ordering: .relaxed)
        shard.sum.wrappingAdd(UInt64(min(value * bounds.scale, 0x1p62)), ordering: .relaxed)
    }

    /// The counts so far. Values recorded at the same moment may be missing from the sum.
    package var snapshot: HistogramSnapshot {
        var counts = [UInt64](repeating: 0, count: bounds.values.count + 1)
        var sum: UInt64 = 0
        for shard in shards {
            for bucket in counts.indices { counts[bucket] &+= shard.counts[bucket].load(ordering: .relaxed) }
            sum &+= shard.sum.load(ordering: .relaxed)
        }
        return HistogramSnapshot(
            bounds: bounds, counts: counts, sum: Double(sum) / bounds.scale, exemplars: exemplars.withLock { $0 })
    }
}

/// The counts of a histogram at one moment.
package struct HistogramSnapshot: Hashable, Sendable {
    package var bounds: Histogram.Bounds
    /// The number of values in each bucket; the last one has no upper bound.
    package var counts: [UInt64]
    /// The sum of all values.
    package var sum: Double
    /// The last value with a trace in each bucket.
    package var exemplars: [Int: Histogram.Exemplar]

    package init(
        bounds: Histogram.Bounds, counts: [UInt64], sum: Double, exemplars: [Int: Histogram.Exemplar] = [:]
    ) {
        self.bounds = bounds
        self.counts = counts
        self.sum = sum
        self.exemplars = exemplars
    }

    package var count: UInt64 { counts.reduce(0, &+) }

    /// The values recorded between `earlier` and this snapshot of the same histogram.
    package func since(_ earlier: HistogramSnapshot) -> HistogramSnapshot {
        HistogramSnapshot(
            bounds: bounds, counts: zip(counts, earlier.counts).map { $0 &- min($0, $1) }, sum: sum - earlier.sum)
    }

    /// The sum of two snapshots with the same bounds.
    package func adding(_ other: HistogramSnapshot) -> HistogramSnapshot {
        HistogramSnapshot(bounds: bounds, counts: zip(counts, other.counts).map(&+), sum: sum + other.sum)
    }

    /// An estimate of the quantile `q` (0…1), interpolated within its bucket like Prometheus' `histogram_quantile`; nil
    /// without values. In the last bucket it is that bucket's lower bound.
    package func quantile(_ q: Double) -> Double? {
        let total = count
        guard total > 0 else { return nil }
        let rank = q * Double(total)
        var below = 0.0
        for (bucket, count) in counts.enumerated() where count > 0 {
            let lower = bucket == 0 ? 0 : bounds.values[bucket - 1]
            guard bucket < bounds.values.count else { return lower }
            if below + Double(count) >= rank {
                return lower + (bounds.values[bucket] - lower) * max(0, rank - below) / Double(count)
            }
            below += Double(count)
        }
        return bounds.values.last
    }
}
