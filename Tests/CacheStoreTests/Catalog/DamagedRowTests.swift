import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CacheStore

/// Damaged rows of jobs, origins, the policy and the queue of webhooks.
@Suite struct DamagedRowTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Writes two jobs, two origins, a policy and two events for webhooks, then closes the catalog with an empty write-ahead log.
    private func filled() async throws {
        let testStore = try TestStore(in: directory)
        let catalog = testStore.store.catalog
        for id in ["first-job", "other-job"] {
            let items = (0..<2).map { JobItemRecord(index: $0, reference: .known(TestStore.id(UInt64($0)))) }
            _ = try await catalog.insertJob(
                JobRecord(id: id, label: "of \(id)", createdAt: Timestamp(seconds: 1), items: items))
        }
        for name in ["first-origin", "other-origin"] {
            _ = try await catalog.saveOrigin(
                Origin(name: name, settings: OriginSettings(baseURL: "https://up.test/\(name)")))
        }
        _ = try await catalog.savePolicy(PolicySettings())
        let deliveries = ["first-hook", "other-hook"].map {
            WebhookDelivery(webhook: $0, message: "m", kind: "k", payload: "{}", createdAt: Timestamp(seconds: 1))
        }
        _ = try await catalog.queue(deliveries)
        try await damage(testStore, "PRAGMA wal_checkpoint(TRUNCATE)")
        try testStore.store.close()
    }

    private func damage(_ testStore: TestStore, _ sql: String) async throws {
        try await testStore.store.catalog.pool.writeWithoutTransaction { try $0.execute(sql: sql) }
    }

    @Test("A catalog with an altered schema is quarantined")
    func aCatalogWhoseSchemaIsNotWhatWasWrittenIsPutAside() async throws {
        try await filled()
        let testStore = try TestStore(in: directory)
        #expect(testStore.store.loss == nil)
        try await damage(
            testStore,
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = replace(sql, 'NEW.id', 'NEW.ie') WHERE name = 'assets_updated';
            PRAGMA wal_checkpoint(TRUNCATE)
            """)
        try testStore.store.close()

        #expect(try TestStore(in: directory).store.loss != nil)
    }

    /// The rows found by a start.
    private struct Found: Equatable {
        var jobs: [String]
        var origins: [String]
        var hasPolicy: Bool
        var webhooks: [String]
    }

    /// The rows found by the next start, and the number of rows it removed.
    private func found() async throws -> (Found, damaged: Int64) {
        let testStore = try TestStore(in: directory)
        let catalog = testStore.store.catalog
        #expect(testStore.store.loss == nil)
        let jobs = try await catalog.unfinishedJobs()
        #expect(jobs.allSatisfy { $0.items.count == 2 })
        let found = Found(
            jobs: jobs.map(\.id), origins: try await catalog.origins().map(\.value.name),
            hasPolicy: try await catalog.policy() != nil, webhooks: try await catalog.backlogs().keys.sorted())
        let damaged = testStore.store.damagedRowCount
        try testStore.store.close()
        return (found, damaged)
    }

    private static let all = Found(
        jobs: ["first-job", "other-job"], origins: ["first-origin", "other-origin"], hasPolicy: true,
        webhooks: ["first-hook", "other-hook"])

    @Test("Undamaged rows are kept")
    func rowsThatAreRightStay() async throws {
        try await filled()
        let (found, damaged) = try await found()
        #expect(found == Self.all)
        #expect(damaged == 0)
    }

    private static let rows = [
        (table: "jobs", row: "id = 'first-job'", column: "label"),
        ("job_items", "job = 1 AND position = 1", "attempts"), ("origins", "name = 'first-origin'", "revision"),
        ("policy", "only = 1", "revision"), ("webhook_deliveries", "webhook = 'first-hook'", "attempts"),
    ]

    /// `isChanged`: an update precedes the detection of the damage.
    @Test("A row with a wrong checksum is skipped and counted", arguments: rows, [false, true])
    func aRowWithAnotherSumIsLeftOutAndCounted(of: (table: String, row: String, column: String), isChanged: Bool)
        async throws
    {
        try await filled()
        let testStore = try TestStore(in: directory)
        try await damage(testStore, "UPDATE \(of.table) SET row_sum = row_sum + 1 WHERE \(of.row)")
        if isChanged { try await damage(testStore, "UPDATE \(of.table) SET \(of.column) = 7 WHERE \(of.row)") }
        try testStore.store.close()

        let (found, damaged) = try await found()

        var expected = Self.all
        if of.table.hasPrefix("job") { expected.jobs = ["other-job"] }
        if of.table == "origins" { expected.origins = ["other-origin"] }
        if of.table == "policy" { expected.hasPolicy = false }
        if of.table == "webhook_deliveries" { expected.webhooks = ["other-hook"] }
        #expect(found == expected)
        #expect(damaged == 1)
        let (again, more) = try await self.found()
        #expect(again == expected)
        #expect(more == 0)
    }

    @Test("An update of an asset keeps its row detectably damaged")
    func aChangeOfAnAssetDoesNotCoverThatItsRowIsDamaged() async throws {
        let testStore = try TestStore(in: directory)
        for number in 1...2 as ClosedRange<UInt64> { try testStore.fill(number, 0..<1000) }
        try await testStore.commits.flush()
        try await damage(
            testStore,
            """
            UPDATE assets SET row_sum = row_sum + 1 WHERE file_serial = (SELECT min(file_serial) FROM assets);
            UPDATE assets SET ttl = 7
            """)
        let change = AssetPatch(tags: ["film"])
        await #expect(throws: CacheError.self) {
            try await testStore.store.catalog.updateAsset(TestStore.id(1), change)
        }
        #expect(
            try await testStore.store.updateAsset(TestStore.id(1), change) == nil, "The damaged row must be removed.")
        _ = try await testStore.store.updateAsset(TestStore.id(2), change)
        try testStore.store.close()

        let store = try TestStore(in: directory).store

        #expect(try await store.catalog.asset(TestStore.id(1)) == nil)
        #expect(try await store.catalog.asset(TestStore.id(2))?.record.tags == ["film"])
        try store.close()
    }

    /// A flipped bit in any copy of a text, in a table or an index, loses that row or nothing.
    @Test(
        "A flipped bit in the catalog file loses at most one row",
        arguments: ["first-job", "of first-job", "first-origin"])
    func aFlippedBitInTheFileCostsOneRowAtMost(text: String) async throws {
        try await filled()
        let path = directory.path("data/catalog.sqlite")
        try SystemDisk().unlink(path + "-wal")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        var (places, from) = ([Int](), bytes.startIndex)
        while let place = bytes.range(of: Data(text.utf8), in: from..<bytes.endIndex) {
            places.append(place.lowerBound)
            from = place.upperBound
        }
        var losses: [Int64] = []
        for place in places {
            try CacheTestKit.damage(path, at: Int64(place + 3))
            let (found, damaged) = try await found()
            #expect(found.jobs.contains("other-job") && found.origins.contains("other-origin") && found.hasPolicy)
            let isWhole = found == Self.all
            #expect(isWhole == (damaged == 0), "\(found)")
            losses.append(damaged)
            // The write-ahead log would hide the next damage.
            try SystemDisk().unlink(path + "-wal")
            try bytes.write(to: URL(fileURLWithPath: path))
        }
        #expect(losses.contains(1))
        #expect(losses.allSatisfy { $0 <= 1 })
    }

    @Test("An unreadable asset row does not stop the scan of other rows")
    func anAssetsRowThatCannotBeReadKeepsNoOtherFromBeingCounted() async throws {
        let testStore = try TestStore(in: directory)
        for number in 1...3 as ClosedRange<UInt64> { _ = try testStore.fill(number, length: 1000, 0..<1000) }
        try await testStore.commits.flush()
        try await damage(
            testStore, "UPDATE assets SET tags = '[' WHERE id = (SELECT id FROM assets ORDER BY id LIMIT 1)")
        let found = Mutex<[EvictionEntry]>([])
        try await testStore.store.catalog.eachAsset { entry in found.withLock { $0.append(entry) } }
        #expect(found.withLock { $0.count } == 2)
        #expect(found.withLock { $0.allSatisfy { $0.extents == [0..<1000] } })
    }
}
