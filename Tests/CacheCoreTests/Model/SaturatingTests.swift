import Testing

@testable import CacheCore

/// Sizes near the limits of integers.
@Suite struct SaturatingTests {
    @Test(
        "A value out of range becomes the nearest representable value",
        arguments: [
            (0.0, 0), (-1.5, -1), (1e15, 1_000_000_000_000_000), (9.3e18, Int64.max), (-1e19, .min), (.infinity, .max),
            (.nan, 0), (Double(Int64.max), .max),
        ] as [(Double, Int64)])
    func whatDoesNotFitIsTheNearestThatDoes(value: Double, whole: Int64) {
        #expect(Int64(saturating: value) == whole)
    }

    @Test("Minimums beyond any disk are rejected with the field name")
    func minimumsBeyondAnyDiskAreRefusedByName() {
        let policy = PolicySettings(capacityBytes: 64 << 20)
        let quotas: [QuotaOwner: Quota] = [
            .origin("a"): Quota(minBytes: .max), .origin("b"): Quota(minBytes: .max), .tag("c"): Quota(minBytes: .max),
        ]
        let error = #expect(throws: CacheError.self) { try policy.checkMinimums(of: quotas, field: "here") }
        #expect(error?.code == .invalidField("here"))
    }

    @Test("A simulation accepts any capacity", arguments: [Int64.max, 1 << 62, (1 << 61) - 1] as [Int64])
    func aTrialOfAnyCapacityAnswers(capacity: Int64) {
        var trace = ReadTrace(epoch: Timestamp(seconds: 0))
        trace.note(0..<100_000, of: AssetID(high: 0, low: 1), at: Timestamp(seconds: 1))
        let simulation = SimulationResult(
            of: trace, since: Timestamp(seconds: 0), under: .s3fifo, capacityBytes: capacity, usedShare: 1)
        let points = MissRatioCurve.points(
            of: trace, since: Timestamp(seconds: 0), under: .s3fifo, capacities: [capacity],
            grid: SegmentGrid(capacity: nil))
        #expect(simulation.byteHitRatio == 0)
        #expect(points.allSatisfy { (0...1).contains($0.byteMissRatio) })
    }
}
