package import CacheCore

/// The simulated result of one eviction policy on a trace of reads.
package struct SimulationResult: Hashable, Sendable {
    package var algorithm: EvictionAlgorithm
    package var capacityBytes: Int64
    /// The ratio of hits to reads, from 0 to 1, like `byteHitRatio`.
    package var requestHitRatio: Double
    package var byteHitRatio: Double
    /// Bytes written to the disk over the period of the trace, extrapolated from the sample.
    package var writtenBytes: Int64
    /// Bytes fetched from upstreams over the same period, extrapolated likewise.
    package var upstreamBytes: Int64

    /// Simulates the reads since `time`. The trace is a sample of the chunks; the simulated capacity is scaled down by
    /// the same share (Waldspurger et al., "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC
    /// 2017). A read takes about a microsecond.
    ///
    /// `usedShare`: the share of the capacity that is in use on average, because of the watermarks.
    package init(
        of trace: ReadTrace, since time: Timestamp, under algorithm: EvictionAlgorithm, capacityBytes: Int64,
        usedShare: Double = 1
    ) {
        let share = trace.share
        var simulation = PolicySimulation(
            policy: algorithm.policy(capacityBytes: Int64(saturating: Double(capacityBytes) * usedShare * share)),
            grid: SegmentGrid(capacity: capacityBytes))
        for read in TimedReads(trace.reads(since: time)) { simulation.read(read.run, of: read.asset, at: read.at) }
        let tally = simulation.tally
        self.algorithm = algorithm
        self.capacityBytes = capacityBytes
        let weight = trace.weight(since: time)
        requestHitRatio = max(0, 1 - (1 - tally.requestHitRatio) * weight)
        byteHitRatio = max(0, 1 - (1 - tally.byteHitRatio) * weight)
        writtenBytes = Int64(saturating: Double(tally.writtenBytes) / share)
        upstreamBytes = Int64(saturating: Double(tally.missedBytes) / share)
    }
}

extension MissRatioCurve {
    /// Estimates the miss ratios of the reads since `time` at several capacities. `grid`: the grid of the capacity in
    /// force. `usedShare`: the share of each capacity that is in use on average.
    package static func points(
        of trace: ReadTrace, since time: Timestamp, under algorithm: EvictionAlgorithm, capacities: [Int64],
        grid: SegmentGrid, usedShare: Double = 1
    ) -> [Point] {
        let sampled = capacities.map { Int64(saturating: Double($0) * usedShare * trace.share) }
        let share = share(capacityBytes: sampled.min() ?? 0, grid: grid)
        var curve = MissRatioCurve(algorithm, capacities: sampled, grid: grid, share: share)
        for read in TimedReads(trace.reads(since: time)) { curve.read(read.run, of: read.asset, at: read.at) }
        let weight = trace.weight(since: time)
        return zip(capacities, curve.points).map { capacity, point in
            Point(
                capacityBytes: capacity, requestMissRatio: min(1, point.requestMissRatio * weight),
                byteMissRatio: min(1, point.byteMissRatio * weight))
        }
    }
}
