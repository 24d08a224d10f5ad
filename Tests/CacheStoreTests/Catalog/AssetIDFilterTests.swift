import CacheCore
import CacheTestKit
import Testing

@testable import CacheStore

@Suite struct AssetIDFilterTests {
    private static func id(_ number: UInt64) -> AssetID {
        AssetID(high: number &* 0x9E37_79B9_7F4A_7C15, low: number &* 0xD1B5_4A32_D192_ED03)
    }

    @Test("An incomplete filter excludes nothing")
    func anIncompleteFilterExcludesNothing() {
        let filter = AssetIDFilter(rows: 0)
        #expect(filter.mayContain(Self.id(1)))
        filter.complete()
        #expect(!filter.mayContain(Self.id(1)))
    }

    @Test("A complete filter contains every row, with less than 1 % false positives")
    func aCompleteFilterKnowsEveryRowAndFewOthers() {
        let filter = AssetIDFilter(rows: 20_000)
        for number in UInt64(1)...20_000 { filter.add(Self.id(number)) }
        filter.complete()
        #expect((1...20_000).allSatisfy { filter.mayContain(Self.id($0)) })
        #expect(
            (20_001...120_000).count { filter.mayContain(Self.id($0)) } < 1_000,
            "The false-positive rate must be below 1 %.")
    }

    @Test("The filter contains rows added before and after the scan")
    func rowsOfBothRunsAreFoundAfterTheScan() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, 0..<10)
        try await testStore.commits.flush()
        try testStore.store.close()
        let reopened = try TestStore(in: testStore.directory)
        try reopened.fill(2, 0..<10)
        try await reopened.commits.flush()
        try await reopened.store.catalog.eachAsset { _ in }
        try reopened.fill(3, 0..<10)
        try await reopened.commits.flush()
        let catalog = reopened.store.catalog
        for number in UInt64(1)...3 { #expect(try await catalog.asset(TestStore.id(number)) != nil, "asset \(number)") }
        #expect(try await catalog.asset(TestStore.id(4)) == nil)
        #expect(!catalog.assetIDs.mayContain(Self.id(4)))
    }
}
