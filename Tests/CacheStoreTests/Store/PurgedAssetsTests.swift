import CacheCore
import CacheTestKit
import Testing

@testable import CacheStore

/// Purges that take effect at once and delete their assets later.
@Suite struct PurgedAssetsTests {
    private let now = Timestamp(seconds: 2000)

    /// A store with the assets 1 to 3, each with 1,000 bytes.
    private func filled() async throws -> TestStore {
        let testStore = try TestStore()
        for number in UInt64(1)...3 { try testStore.fill(number, 0..<1000) }
        try await testStore.commits.flush()
        return testStore
    }

    private func purge(_ id: String, expiresAt: Timestamp = Timestamp(seconds: 9000)) -> PurgeRecord {
        PurgeRecord(
            id: id, owner: TokenOwner(id: "team", limits: ContentLimits(prefixes: ["/o/media/"])), assets: 2,
            pinnedAssets: 1, bytes: 2000, expiresAt: expiresAt)
    }

    /// The versions of these assets as the catalog has them.
    private func versions(_ numbers: [UInt64], in store: Store) async throws -> [AssetVersion] {
        try await store.catalog.assetIDs(matching: AssetSelection(ids: numbers.map(TestStore.id))).map(
            AssetVersion.init)
    }

    private func listed(_ store: Store) async throws -> Set<String> {
        let page = try await store.catalog.assetPage(AssetQuery())
        #expect(try await store.catalog.assetCount(AssetQuery()) == page.items.count)
        return Set(page.items.map(\.record.key))
    }

    @Test("A marked asset counts as removed, also after a restart, and is deleted with its file")
    func aMarkedAssetCountsAsRemoved() async throws {
        let testStore = try await filled()
        let purge = try await testStore.store.mark(
            purge("p"), try await versions([1, 2], in: testStore.store), at: now)

        #expect(try await testStore.store.load(TestStore.id(1)) == nil)
        #expect(try await testStore.store.load(TestStore.id(3)) != nil)
        #expect(try await testStore.store.updateAsset(TestStore.id(2), AssetPatch(isPinned: true)) == nil)
        #expect(try await listed(testStore.store) == ["/o/media/3.mp4"])
        #expect(testStore.store.catalog.progress(of: purge) == (0, 0, false))

        try testStore.store.close(isOrderly: false)
        let restarted = try TestStore(in: testStore.directory)
        let store = restarted.store
        #expect(store.catalog.hasPurged && store.catalog.purges.map(\.id) == ["p"])
        let known = try #require(store.catalog.purges.first)
        #expect(known == purge)
        #expect(try await store.load(TestStore.id(1)) == nil)
        #expect(try await listed(store) == ["/o/media/3.mp4"])
        #expect(try await store.audit(repairing: false).findings == [])

        let first = try await store.removePurged(limit: 1)
        #expect(first.assets.count == 1 && first.assets[0].extents == [0..<1000] && first.diskBytes > 0)
        #expect(store.catalog.progress(of: known) == (1, 1000, false))
        #expect(try await store.removePurged(limit: 9).assets.count == 1)
        #expect(try await store.removePurged(limit: 9).assets.isEmpty)
        #expect(store.catalog.progress(of: known) == (2, 2000, true))
        #expect(!store.catalog.hasPurged)
        let audit = try await store.audit(repairing: false)
        #expect(audit.files == 1 && audit.findings == [])
        try store.close()
    }

    @Test("An asset that is stored again after the selection is a new one")
    func anAssetThatIsStoredAgainIsNew() async throws {
        let testStore = try await filled()
        let store = testStore.store
        _ = try await store.updateAsset(TestStore.id(1), AssetPatch(isPinned: true, tags: ["old"]))
        let purge = try await store.mark(purge("p"), try await versions([1, 2], in: store), at: now)
        try testStore.fill(1, 0..<500)
        try await testStore.commits.flush()

        let again = try #require(try await store.load(TestStore.id(1)))
        #expect(again.extents.runs == [0..<500] && !again.record.isPinned && again.record.tags == [])
        #expect(store.catalog.progress(of: purge) == (1, 1000, false))
        #expect(try await store.removePurged(limit: 9).assets.map(\.id) == [TestStore.id(2)])
        #expect(try await listed(store) == ["/o/media/1.mp4", "/o/media/3.mp4"])
        let audit = try await store.audit(repairing: false)
        #expect(audit.files == 2 && audit.findings == [])
        try store.close()
    }

    @Test("A generation that has changed since the selection is not marked, nor is an asset twice")
    func changedGenerationsAreNotMarked() async throws {
        let testStore = try await filled()
        let store = testStore.store
        let selected = try await versions([1, 2], in: store)
        try testStore.fill(1, generation: 2, 0..<100)
        try await testStore.commits.flush()
        let first = try await store.mark(purge("p"), selected, at: now)
        let second = try await store.mark(purge("q"), selected, at: now)

        #expect(first.marked == 1 && second.marked == 0)
        #expect(store.catalog.progress(of: second) == (0, 0, true))
        #expect(try await listed(store) == ["/o/media/1.mp4", "/o/media/3.mp4"])
        try store.close()
    }

    @Test("A purge is forgotten when it has ended and expired, and their number is limited")
    func endedPurgesAreForgotten() async throws {
        let testStore = try await filled()
        let catalog = testStore.store.catalog
        let selected = try await versions([1, 2, 3], in: testStore.store)
        _ = try await catalog.mark(purge("a", expiresAt: now), Array(selected.prefix(1)), at: now)
        _ = try await catalog.mark(purge("b", expiresAt: now), [], at: now)
        let error = await #expect(throws: CacheError.self) {
            try await catalog.mark(purge("c"), selected, at: now, most: 1)
        }
        #expect(error?.code == .overloaded)
        _ = try await testStore.store.removePurged(limit: 9)
        _ = try await catalog.mark(purge("d"), selected, at: now)
        try testStore.store.close()

        let restarted = try TestStore(in: testStore.directory)
        #expect(restarted.store.catalog.purges.map(\.id) == ["d"])
        try restarted.store.close()
    }
}
