import CacheCore

/// How far the estimate from a sample of the segments is from the exact miss ratios.
struct CurveCheck {
    private static let tolerance = 1.5
    private static let scales = [0.1, 0.2, 0.5, 1, 2, 4]

    let trace: MediaTrace

    func run() -> Bool {
        print("\n\(trace.name): byte misses (%) of s3fifo at \(Self.scales) × the capacity, exact and sampled")
        var areAllNear = true
        for percent in [Int64(1), 10] {
            let capacity = trace.footprint / 100 * percent
            let grid = SegmentGrid(capacity: capacity)
            let share = MissRatioCurve.share(capacityBytes: capacity, grid: grid)
            let exact = ratios(capacity: capacity, grid: grid, share: 1)
            let sampled = ratios(capacity: capacity, grid: grid, share: share)
            let error = zip(exact, sampled).map { abs($0 - $1) }.max() ?? 0
            areAllNear = areAllNear && error <= Self.tolerance
            print("\(percent) %, exact:              ", exact.map { $0.rounded(2) })
            print(
                "\(percent) %, of \((100 * share).rounded(1)) % of segments:", sampled.map { $0.rounded(2) },
                "largest error \(error.rounded(2)), at most \(Self.tolerance)")
        }
        return areAllNear
    }

    private func ratios(capacity: Int64, grid: SegmentGrid, share: Double) -> [Double] {
        let capacities = Self.scales.map { Int64(Double(capacity) * $0) }
        var curve = MissRatioCurve(.s3fifo, capacities: capacities, grid: grid, share: share)
        for read in trace.reads { curve.read(read.run, of: read.asset, at: read.at) }
        return curve.points.map { 100 * $0.byteMissRatio }
    }
}
