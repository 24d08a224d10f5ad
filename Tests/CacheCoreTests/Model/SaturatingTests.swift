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
}
