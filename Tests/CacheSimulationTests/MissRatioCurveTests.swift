import CacheCore
import TestChance
import Testing

@testable import CacheSimulation

@Suite struct MissRatioCurveTests {
    private static let segmentBytes: Int64 = 1 << 20
    private static let capacities: [Int64] = [400, 1600].map { $0 << 20 }

    /// Reads of whole segments with skewed popularity, one per minute.
    private static let reads: [(asset: AssetID, at: Timestamp)] = {
        var random = SeededRandom(seed: 7)
        return (0..<Int64(30_000)).map { minute in
            let share = random.next() >> 44
            let key = (((share * share) >> 20) * 8000) >> 20
            return (AssetID(high: 0, low: key), Timestamp(seconds: 60 * minute))
        }
    }()

    private func points(_ algorithm: EvictionAlgorithm, share: Double) -> [MissRatioCurve.Point] {
        var curve = MissRatioCurve(
            algorithm, capacities: Self.capacities, grid: SegmentGrid(segmentBytes: Self.segmentBytes), share: share)
        for read in Self.reads { curve.read(0..<Self.segmentBytes, of: read.asset, at: read.at) }
        return curve.points
    }

    @Test("Half of the segments give nearly the exact curve", arguments: [EvictionAlgorithm.s3fifo, .gdsf])
    func halfOfTheSegmentsTellNearlyWhatAllOfThemDo(algorithm: EvictionAlgorithm) {
        let exact = points(algorithm, share: 1)
        let sampled = points(algorithm, share: 0.5)

        for (exact, sampled) in zip(exact, sampled) {
            #expect(exact.capacityBytes == sampled.capacityBytes)
            #expect(abs(exact.byteMissRatio - sampled.byteMissRatio) < 0.03, "\(exact), \(sampled)")
            #expect(abs(exact.requestMissRatio - sampled.requestMissRatio) < 0.03, "\(exact), \(sampled)")
        }
        #expect(exact.map(\.byteMissRatio) == exact.map(\.byteMissRatio).sorted(by: >))
    }

    @Test("The whole sample gives the exact simulation")
    func theWholeSampleIsTheExactSimulation() {
        var cache = PolicySimulation(
            policy: S3FIFOPolicy(capacityBytes: Self.capacities[1]), grid: SegmentGrid(segmentBytes: Self.segmentBytes))
        for read in Self.reads { cache.read(0..<Self.segmentBytes, of: read.asset, at: read.at) }

        let missRatio = Double(cache.tally.missedBytes) / Double(cache.tally.bytes)
        #expect(points(.s3fifo, share: 1)[1].byteMissRatio == missRatio)
    }

    @Test("A curve without reads has no misses")
    func nothingReadIsNothingMissed() {
        for share in [-1, 0, 0.1, 1, 7, .infinity] {
            var curve = MissRatioCurve(
                .gdsf, capacities: [.min, 0, .max], grid: SegmentGrid(segmentBytes: 0), share: share)
            #expect(curve.points.map(\.byteMissRatio) == [0, 0, 0])
            curve.read(5..<500, of: AssetID(high: 1, low: 1), at: Timestamp(seconds: 1))
            #expect(curve.points.allSatisfy { $0.byteMissRatio <= 1 })
        }
    }

    @Test("A larger cache needs a smaller sample")
    func aLargerCacheNeedsASmallerShare() {
        let grid = SegmentGrid(segmentBytes: 1 << 20)
        let capacities: [Int64] = [.min, 0, 1 << 30, 2 << 30, 8 << 30]

        let shares = capacities.map { MissRatioCurve.share(capacityBytes: $0, grid: grid) }

        #expect(shares == [1, 1, 1, 1, 0.25])
    }
}
