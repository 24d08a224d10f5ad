import CacheCore
import Testing

/// Quotas of origins, as the ledger keeps them.
@Suite struct OriginSharesTests {
    let start = Timestamp(seconds: 1_780_000_000)
    let mebibyte: Int64 = 1 << 20

    private func asset(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    /// Segments of origin `a` (1 to 4), then of origin `b` (11 to 14), each of a mebibyte.
    private func ledger(_ quotas: [String: OriginSettings.Quota]) -> SpaceLedger {
        var ledger = SpaceLedger(
            settings: PolicySettings(capacityBytes: 100 << 20, minFreeDiskBytes: 0, algorithm: .lru, grace: .zero))
        _ = ledger.adopt(quotas)
        for (origin, first) in [("a", UInt64(1)), ("b", 11)] {
            for number in first..<first + 4 {
                ledger.arrived(0..<mebibyte, of: asset(number), from: origin, at: start)
            }
        }
        return ledger
    }

    private func victims(
        of ledger: inout SpaceLedger, _ mebibytes: Int64, share: Int? = nil, keepsQuotas: Bool = true
    ) -> [UInt64] {
        ledger.victims(
            toFree: mebibytes * mebibyte, at: start, isDesperate: true, of: share, keepsQuotas: keepsQuotas
        ).map(\.segment.asset.low)
    }

    @Test func whatIsAboveAMaximumIsToldAndTakenOfItsOwn() throws {
        var ledger = ledger(["b": .init(maxBytes: 3 << 20), "a": .init(maxBytes: 9 << 20)])
        let overdraft = try #require(ledger.overdrafts.first)
        let victims = victims(of: &ledger, 2, share: overdraft.share)
        ledger.gone(0..<mebibyte, of: asset(11))

        #expect(overdraft.bytes == mebibyte)
        #expect(victims == [11, 12])
        #expect(ledger.overdrafts.isEmpty)
    }

    @Test func whatIsGuaranteedIsSkippedUntilNothingElseIsLeft() {
        var ledger = ledger(["a": .init(minBytes: 3 << 20)])

        #expect(victims(of: &ledger, 3) == [1, 11, 12])
        #expect(victims(of: &ledger, 100) == [1, 11, 12, 13, 14])
        #expect(victims(of: &ledger, 3, keepsQuotas: false) == [1, 2, 3])
    }

    @Test func quotasThatComeLaterAskForACount() {
        var ledger = ledger([:])
        let before = ledger.adopt(["a": .init(maxBytes: 1)])
        let uncounted = ledger.overdrafts.count
        for number in UInt64(1)...4 { ledger.count([0..<mebibyte], of: asset(number), from: "a", lastUse: start) }
        let counted = ledger.overdrafts.map(\.bytes)
        let again = ledger.adopt(["a": .init(maxBytes: 2 << 20)])

        #expect(before && !again)
        #expect(uncounted == 0)
        #expect(counted == [4 * mebibyte - 1])
        #expect(ledger.overdrafts.map(\.bytes) == [2 * mebibyte])
    }

    @Test func sharesOutlastARebuilding() throws {
        var ledger = ledger(["a": .init(maxBytes: 1 << 20)])
        var settings = ledger.settings
        settings.algorithm = .gdsf
        settings.capacityBytes = 1 << 40
        ledger.adopt(settings)
        let begun = ledger.beginRebuilding()
        let copy = try #require(begun)
        ledger.gone(0..<mebibyte, of: asset(2))
        _ = ledger.finishRebuilding(copy.rebuilt())

        #expect(ledger.overdrafts.map(\.bytes) == [2 * mebibyte])
    }
}
