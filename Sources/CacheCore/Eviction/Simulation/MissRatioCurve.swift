/// How many reads a policy would miss at several capacities, estimated from a sample of the segments.
///
/// The sample is spatial: all reads of a segment whose hash is below a threshold, and none of the others (Waldspurger et
/// al., "Efficient MRC Construction with SHARDS", FAST 2015; the adjusted variant, which divides by the expected number of
/// sampled reads). Each capacity has a small cache of that share of it, which holds for any policy (Waldspurger et al.,
/// "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC 2017).
package struct MissRatioCurve: Sendable {
    /// What is missed at one capacity, as a share of all.
    package struct Point: Hashable, Sendable {
        package let capacityBytes: Int64
        package let requestMissRatio: Double
        package let byteMissRatio: Double

        package init(capacityBytes: Int64, requestMissRatio: Double, byteMissRatio: Double) {
            self.capacityBytes = capacityBytes
            self.requestMissRatio = requestMissRatio
            self.byteMissRatio = byteMissRatio
        }
    }

    private static let hashes = 1 << 24

    private let grid: SegmentGrid
    private let capacities: [Int64]
    private var caches: [CacheSimulation]
    /// A segment is sampled if its hash, of 24 bits, is below.
    private let threshold: Int
    private var requests: Int64 = 0
    private var bytes: Int64 = 0

    /// `share`: the share of segments that are sampled, above 0; 1 is the exact simulation.
    package init(
        _ algorithm: EvictionAlgorithm, capacities: [Int64], grid: SegmentGrid, share: Double,
        touchInterval: Duration = .seconds(300)
    ) {
        let threshold = Int(min(max(share, 0), 1) * Double(Self.hashes))
        self.grid = grid
        self.capacities = capacities
        self.threshold = max(1, threshold)
        let share = Double(self.threshold) / Double(Self.hashes)
        caches = capacities.map { capacity in
            let policy = algorithm.policy(capacityBytes: Int64(clamping: UInt64(max(0, Double(capacity) * share))))
            return CacheSimulation(policy: policy, grid: grid, touchInterval: touchInterval)
        }
    }

    /// The share by which a cache of that capacity has about two thousand segments in the sample, or all it has: what is
    /// missed at a tenth to four times the capacity is then known within a point (`make eviction`).
    package static func share(capacityBytes: Int64, grid: SegmentGrid) -> Double {
        min(1, 2048 * Double(grid.segmentBytes) / Double(max(1, capacityBytes)))
    }

    /// A run of an asset is read.
    package mutating func read(_ run: ByteRange, of asset: AssetID, at now: Timestamp) {
        for index in grid.indices(of: run) {
            let part = grid.run(of: index).clamped(to: run)
            requests += 1
            bytes &+= part.length
            guard SegmentID(asset: asset, index: index).mixed.scaled(below: Self.hashes) < threshold else { continue }
            for place in caches.indices { caches[place].read(part, of: asset, at: now) }
        }
    }

    /// One for each capacity, in the order they were given; nothing is missed as long as nothing was read.
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
