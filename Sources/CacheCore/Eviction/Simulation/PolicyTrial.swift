/// What an eviction policy would have made of the reads of a trace.
package struct PolicyTrial: Hashable, Sendable {
    package var algorithm: EvictionAlgorithm
    package var capacityBytes: Int64
    package var requestHitRatio: Double
    package var byteHitRatio: Double
    /// Over the time that the trace covers, reckoned up from its sample.
    package var writtenBytes: Int64
    /// What would have been fetched, likewise.
    package var upstreamBytes: Int64

    /// Plays the reads since `time`: a sample of the chunks against the same share of the capacity (Waldspurger et al.,
    /// "Cache Modeling and Optimization using Miniature Simulations", USENIX ATC 2017). Takes about a microsecond a read.
    /// `usedShare`: of the capacity, that is in use.
    package init(
        of trace: ReadTrace, since time: Timestamp, under algorithm: EvictionAlgorithm, capacityBytes: Int64,
        usedShare: Double = 1
    ) {
        let share = trace.share
        var simulation = CacheSimulation(
            policy: algorithm.policy(capacityBytes: Int64(saturating: Double(capacityBytes) * usedShare * share)),
            grid: SegmentGrid(capacity: capacityBytes))
        for read in PacedReads(trace.reads(since: time)) { simulation.read(read.run, of: read.asset, at: read.at) }
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
    /// What the reads since `time` would miss at several capacities. `grid`: of the capacity in force; `usedShare`: of each, that
    /// is in use.
    package static func points(
        of trace: ReadTrace, since time: Timestamp, under algorithm: EvictionAlgorithm, capacities: [Int64],
        grid: SegmentGrid, usedShare: Double = 1
    ) -> [Point] {
        let sampled = capacities.map { Int64(saturating: Double($0) * usedShare * trace.share) }
        let share = share(capacityBytes: sampled.min() ?? 0, grid: grid)
        var curve = MissRatioCurve(algorithm, capacities: sampled, grid: grid, share: share)
        for read in PacedReads(trace.reads(since: time)) { curve.read(read.run, of: read.asset, at: read.at) }
        let weight = trace.weight(since: time)
        return zip(capacities, curve.points).map { capacity, point in
            Point(
                capacityBytes: capacity, requestMissRatio: min(1, point.requestMissRatio * weight),
                byteMissRatio: min(1, point.byteMissRatio * weight))
        }
    }
}
