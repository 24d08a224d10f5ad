import CacheCore
import Testing

/// Quotas of origins and tags in the ledger.
@Suite struct QuotaUsageTests {
    let start = Timestamp(seconds: 1_780_000_000)
    let mebibyte: Int64 = 1 << 20

    private func asset(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    /// Segments of 1 MiB: 1 to 4 of origin `a`, then 11 to 14 of origin `b`. Even numbers have the tag `even`, the
    /// first segment of each origin has the tag `first`.
    private func ledger(_ quotas: [QuotaOwner: Quota]) -> SpaceLedger {
        var ledger = SpaceLedger(
            settings: PolicySettings(capacityBytes: 100 << 20, minFreeDiskBytes: 0, algorithm: .lru, grace: .zero))
        _ = ledger.adopt(quotas)
        for (origin, first) in [("a", UInt64(1)), ("b", 11)] {
            for number in first..<first + 4 {
                ledger.arrived(
                    0..<mebibyte, of: asset(number), from: owners(origin, number, isFirst: number == first), at: start)
            }
        }
        return ledger
    }

    private func owners(_ origin: String, _ number: UInt64, isFirst: Bool = false) -> AssetOwners {
        AssetOwners(origin: origin, tags: (number % 2 == 0 ? ["even", "even"] : []) + (isFirst ? ["first"] : []))
    }

    private func victims(
        of ledger: inout SpaceLedger, _ mebibytes: Int64, owner: QuotaOwner? = nil, keepsQuotas: Bool = true
    ) -> [UInt64] {
        ledger.victims(
            toFree: mebibytes * mebibyte, at: start, isUrgent: true, of: owner, keepsQuotas: keepsQuotas
        ).map(\.segment.asset.low)
    }

    @Test("Usage above a maximum is reported and evicted from the same owner")
    func whatIsAboveAMaximumIsToldAndTakenOfItsOwn() throws {
        var ledger = ledger([.origin("b"): Quota(maxBytes: 3 << 20), .origin("a"): Quota(maxBytes: 9 << 20)])
        let overdraft = try #require(ledger.overdrafts.first)
        let victims = victims(of: &ledger, 2, owner: overdraft.owner)
        ledger.gone(0..<mebibyte, of: asset(11))

        #expect(overdraft.bytes == mebibyte)
        #expect(victims == [11, 12])
        #expect(ledger.overdrafts.isEmpty)
    }

    @Test("Guaranteed segments are skipped while any other segment can be evicted")
    func whatIsGuaranteedIsSkippedUntilNothingElseIsLeft() {
        var ledger = ledger([.origin("a"): Quota(minBytes: 3 << 20)])

        #expect(victims(of: &ledger, 3) == [1, 11, 12])
        #expect(victims(of: &ledger, 100) == [1, 11, 12, 13, 14])
        #expect(victims(of: &ledger, 3, keepsQuotas: false) == [1, 2, 3])
    }

    @Test("Quotas added later require a recount")
    func quotasThatComeLaterAskForACount() {
        var ledger = ledger([:])
        let before = ledger.adopt([.origin("a"): Quota(maxBytes: 1)])
        let uncounted = ledger.overdrafts.count
        for number in UInt64(1)...4 {
            ledger.count([0..<mebibyte], of: asset(number), from: owners("a", number), lastUse: start)
        }
        let counted = ledger.overdrafts.map(\.bytes)
        let again = ledger.adopt([.origin("a"): Quota(maxBytes: 2 << 20)])
        let more = ledger.adopt([.origin("a"): Quota(maxBytes: 2 << 20), .tag("even"): Quota(maxBytes: 1)])
        let none = ledger.adopt([:])

        #expect(before && !again && more && !none)
        #expect(uncounted == 0)
        #expect(counted == [4 * mebibyte - 1])
        #expect(ledger.overdrafts.isEmpty)
    }

    @Test("Quota usage outlasts a rebuild")
    func sharesOutlastARebuilding() throws {
        var ledger = ledger([.origin("a"): Quota(maxBytes: 1 << 20)])
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

    @Test("An asset counts once for its origin and once for each tag")
    func anAssetCountsToItsOriginAndToEachOfItsTagsOnce() {
        let ledger = ledger([
            .origin("a"): Quota(maxBytes: 1), .tag("even"): Quota(maxBytes: 1), .tag("first"): Quota(maxBytes: 1),
            .tag("none"): Quota(maxBytes: 1),
        ])
        let bytes = Dictionary(uniqueKeysWithValues: ledger.overdrafts.map { ($0.owner, $0.bytes + 1) })

        let expected: [QuotaOwner: Int64] = [.origin("a"): 4 << 20, .tag("even"): 4 << 20, .tag("first"): 2 << 20]
        #expect(bytes == expected)
    }

    @Test("Above a tag maximum only assets of the tag are evicted")
    func aboveATagsMaximumOnlyItsAssetsGo() {
        var ledger = ledger([.tag("even"): Quota(maxBytes: 3 << 20)])

        #expect(victims(of: &ledger, 100, owner: .tag("even")) == [2, 4, 12, 14])
        #expect(victims(of: &ledger, 100, owner: .tag("first")).isEmpty)
        #expect(victims(of: &ledger, 3) == [1, 2, 3])
    }

    @Test("The minimum of a tag protects its assets above the maximum of their origin")
    func whatIsLeftToATagStaysWhateverItsOriginHasTooMuch() {
        var ledger = ledger([.tag("even"): Quota(minBytes: 4 << 20), .origin("a"): Quota(maxBytes: 1 << 20)])

        #expect(victims(of: &ledger, 3, owner: .origin("a")) == [1, 3])
        #expect(victims(of: &ledger, 100) == [1, 3, 11, 13])
        #expect(victims(of: &ledger, 3, owner: .origin("a"), keepsQuotas: false) == [1, 2, 3])
    }

    @Test("An asset is protected if any of its owners needs it")
    func anAssetOfSeveralIsLeftWhereOneOfThemNeedsIt() {
        var ledger = ledger([.tag("first"): Quota(minBytes: 2 << 20), .origin("a"): Quota(minBytes: 2 << 20)])

        #expect(victims(of: &ledger, 100) == [2, 3, 12, 13, 14])
    }

    @Test("Changed tags move the counted bytes at once")
    func otherTagsMoveWhatIsThereAtOnce() {
        var ledger = ledger([.tag("even"): Quota(maxBytes: 1), .tag("odd"): Quota(maxBytes: 1)])
        let extents = ByteRangeSet([0..<mebibyte])
        ledger.own(asset(2), by: AssetOwners(origin: "a", tags: ["odd"]), extents: extents)
        ledger.own(asset(1), by: AssetOwners(origin: "a", tags: ["odd", "even"]), extents: extents)
        ledger.own(asset(4), by: AssetOwners(origin: "a"), extents: extents)
        ledger.own(asset(99), by: AssetOwners(origin: "a", tags: ["odd"]), extents: extents)
        let moved = Dictionary(uniqueKeysWithValues: ledger.overdrafts.map { ($0.owner, $0.bytes + 1) })
        ledger.gone(0..<mebibyte, of: asset(1))
        ledger.gone(0..<mebibyte, of: asset(2))

        let expected: [QuotaOwner: Int64] = [.tag("even"): 3 << 20, .tag("odd"): 2 << 20]
        #expect(moved == expected)
        #expect(ledger.overdrafts.map(\.owner) == [.tag("even")])
        #expect(ledger.overdrafts.map(\.bytes) == [2 * mebibyte - 1])
    }
}
