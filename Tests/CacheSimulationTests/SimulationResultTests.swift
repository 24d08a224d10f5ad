import CacheCore
import TestChance
import Testing

@testable import CacheSimulation

/// Simulations of policies on a recorded trace.
@Suite struct SimulationResultTests {
    private static let epoch = Timestamp(seconds: 1_000_000)

    /// Reads of 6,000 chunks with skewed popularity, one per minute.
    private static func trace(limit: Int) -> ReadTrace {
        var (trace, random) = (ReadTrace(limit: limit, epoch: epoch), SeededRandom(seed: 11))
        for minute in 0..<40_000 as Range<Int> {
            let share = random.next() >> 44
            let asset = AssetID(high: 0, low: ((((share * share) >> 20) * 6000) >> 20) + 1)
            trace.note(0..<1 << 20, of: asset, at: epoch + .seconds(60 * minute))
        }
        return trace
    }

    @Test("The whole trace gives the exact simulation")
    func allReadsAreTheExactSimulation() {
        let trace = Self.trace(limit: 1 << 20)
        let result = SimulationResult(of: trace, since: Self.epoch, under: .sieve, capacityBytes: 1000 << 20)
        var simulation = PolicySimulation(
            policy: SievePolicy(capacityBytes: 1000 << 20), grid: SegmentGrid(capacity: 1000 << 20))
        for read in TimedReads(trace.reads(since: Self.epoch)) {
            simulation.read(read.run, of: read.asset, at: read.at)
        }

        #expect(trace.share == 1)
        #expect(result.byteHitRatio == simulation.tally.byteHitRatio && result.byteHitRatio > 0.2)
        #expect(result.upstreamBytes == simulation.tally.missedBytes)
        #expect(result.writtenBytes == simulation.tally.writtenBytes)
    }

    @Test("A sampled trace gives nearly the exact result", arguments: [EvictionAlgorithm.lru, .s3fifo])
    func aSampleTellsNearlyTheSame(algorithm: EvictionAlgorithm) {
        let (whole, part) = (Self.trace(limit: 1 << 20), Self.trace(limit: 25_000))
        let exact = SimulationResult(of: whole, since: Self.epoch, under: algorithm, capacityBytes: 1500 << 20)
        let about = SimulationResult(of: part, since: Self.epoch, under: algorithm, capacityBytes: 1500 << 20)

        #expect(part.share < 1)
        #expect(abs(exact.byteHitRatio - about.byteHitRatio) < 0.04, "\(exact), \(about)")
        #expect(abs(Double(about.upstreamBytes) / Double(exact.upstreamBytes) - 1) < 0.2, "\(exact), \(about)")
    }

    @Test("The curve falls and agrees with the simulation")
    func theCurveFallsAndAgreesWithTheTrial() {
        let trace = Self.trace(limit: 1 << 20)
        let capacities: [Int64] = [200, 1000, 6000].map { $0 << 20 }
        let grid = SegmentGrid(capacity: capacities[1])
        let points = MissRatioCurve.points(
            of: trace, since: Self.epoch, under: .s3fifo, capacities: capacities, grid: grid)
        let result = SimulationResult(of: trace, since: Self.epoch, under: .s3fifo, capacityBytes: capacities[1])

        #expect(points.map(\.capacityBytes) == capacities)
        #expect(points.map(\.byteMissRatio) == points.map(\.byteMissRatio).sorted(by: >))
        #expect(abs(points[1].byteMissRatio - (1 - result.byteHitRatio)) < 0.03)
    }

    @Test("A simulation accepts any capacity", arguments: [Int64.max, 1 << 62, (1 << 61) - 1] as [Int64])
    func aTrialOfAnyCapacityAnswers(capacity: Int64) {
        var trace = ReadTrace(epoch: Self.epoch)
        trace.note(0..<100_000, of: AssetID(high: 0, low: 1), at: Self.epoch)
        let result = SimulationResult(of: trace, since: Self.epoch, under: .s3fifo, capacityBytes: capacity)
        let points = MissRatioCurve.points(
            of: trace, since: Self.epoch, under: .s3fifo, capacities: [capacity], grid: SegmentGrid(capacity: nil))

        #expect(result.byteHitRatio == 0)
        #expect(points.allSatisfy { (0...1).contains($0.byteMissRatio) })
    }
}
