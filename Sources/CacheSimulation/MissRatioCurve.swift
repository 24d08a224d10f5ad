package import CacheCore

/// Estimates the miss ratios of a policy at several capacities from a sample of the segments.
///
/// The sample is spatial: it has all reads of each segment with a hash below a threshold, and no others (Waldspurger et
/// al., "Efficient MRC Construction with SHARDS", FAST 2015). As in the adjusted variant, misses are divided by the
/// expected number of sampled reads.
///
/// Each capacity is simulated by a miniature cache, scaled down by the sampled share. This is valid for any policy
/// (Waldspurger et al., "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC 2017).
package struct MissRatioCurve: Sendable {
    /// The miss ratios at one capacity, from 0 to 1.
    package struct Point: Hashable, Sendable {
        package let capacityBytes: Int64
        package let requestMissRatio: Double
        package let byteMissRatio: Double
    }

    /// The number of hash values.
    private static let hashes = 1 << 24

    private let grid: SegmentGrid
    private let capacities: [Int64]
    /// One miniature cache for each capacity.
    private var caches: [PolicySimulation]
    /// A segment is sampled if its 24-bit hash is below this value.
    private let threshold: Int
    /// All reads and bytes, whether sampled or not.
    private var requests: Int64 = 0
    private var bytes: Int64 = 0

    /// `share`: the share of segments to sample, above 0; 1 is an exact simulation. `capacities`: in bytes.
    package init(
        _ algorithm: EvictionAlgorithm, capacities: [Int64], grid: SegmentGrid, share: Double,
        touchInterval: Duration = .seconds(300)
    ) {
        self.grid = grid
        self.capacities = capacities
        threshold = max(1, Int(min(max(share, 0), 1) * Double(Self.hashes)))
        let share = Double(threshold) / Double(Self.hashes)
        caches = capacities.map { capacity in
            let policy = algorithm.policy(capacityBytes: Int64(clamping: UInt64(max(0, Double(capacity) * share))))
            return PolicySimulation(policy: policy, grid: grid, touchInterval: touchInterval)
        }
    }

    /// The share with which a cache of that capacity has about 2048 segments in the sample, or 1 for smaller caches.
    /// From a tenth to four times the capacity, the error is then within one percentage point (measured by `make
    /// eviction`).
    package static func share(capacityBytes: Int64, grid: SegmentGrid) -> Double {
        min(1, 2048 * Double(grid.segmentBytes) / Double(max(1, capacityBytes)))
    }

    /// Records a read of a run in every miniature cache, if its segments are sampled.
    package mutating func read(_ run: ByteRange, of asset: AssetID, at now: Timestamp) {
        for index in grid.indices(of: run) {
            let part = grid.run(of: index).clamped(to: run)
            requests += 1
            bytes &+= part.length
            guard SegmentID(asset: asset, index: index).hashed(below: Self.hashes) < threshold else { continue }
            for slot in caches.indices { caches[slot].read(part, of: asset, at: now) }
        }
    }

    /// One point for each capacity, in the given order. Without reads all ratios are 0.
    package var points: [Point] {
        let share = Double(threshold) / Double(Self.hashes)
        return zip(capacities, caches).map { capacity, cache in
            let misses = Double(cache.tally.requests - cache.tally.hits)
            return Point(
                capacityBytes: capacity,
                requestMissRatio: min(1, misses / max(1, Double(requests) * share)),
                byteMissRatio: min(1, Double(cache.tally.missedBytes) / max(1, Double(bytes) * share)))
        }
    }
}
