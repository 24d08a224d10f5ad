import CacheCore
import CacheTestKit
import Testing

@testable import CacheStore

@Suite struct AssetIDFilterTests {
    private static func id(_ number: UInt64) -> AssetID {
        AssetID(high: number &* 0x9E37_79B9_7F4A_7C15, low: number &* 0xD1B5_4A32_D192_ED03)
    }

    @Test func anIncompleteFilterExcludesNothing() {
        let filter = AssetIDFilter(rows: 0)
        #expect(filter.mayContain(Self.id(1)))
        filter.complete()
        #expect(!filter.mayContain(Self.id(1)))
    }

    @Test func aCompleteFilterKnowsEveryRowAndFewOthers() {
        let filter = AssetIDFilter(rows: 20_000)
        for number in UInt64(1)...20_000 { filter.add(Self.id(number)) }
        filter.complete()
        #expect((1...20_000).allSatisfy { filter.mayContain(Self.id($0)) })
        #expect((20_001...120_000).count { filter.mayContain(Self.id($0)) } < 1_000, "fewer than 1 % false positives")
    }

    @Test func rowsOfBothRunsAreFoundAfterTheScan() async throws {
        let shelf = try Shelf()
        try shelf.fill(1, 0..<10)
        try await shelf.commits.flush()
        try shelf.store.close()
        let reopened = try Shelf(in: shelf.directory)
        try reopened.fill(2, 0..<10)
        try await reopened.commits.flush()
        try await reopened.store.catalog.eachAsset { _ in }
        try reopened.fill(3, 0..<10)
        try await reopened.commits.flush()
        let catalog = reopened.store.catalog
        for number in UInt64(1)...3 { #expect(try await catalog.asset(Shelf.id(number)) != nil, "asset \(number)") }
        #expect(try await catalog.asset(Shelf.id(4)) == nil)
        #expect(!catalog.assetIDs.mayContain(Self.id(4)))
    }
}
