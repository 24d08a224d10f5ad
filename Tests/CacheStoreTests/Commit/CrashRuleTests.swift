import CacheCore
import CacheTestKit
import GRDB
import Glibc
import Synchronization
import Testing

@testable import CacheStore

/// Records the claims in the catalog at each sync, unlink and punch.
private final class Witness: Sendable {
    /// The claims at the time of one call.
    struct Sight: Hashable {
        var call: FaultyDisk.Call
        var claimedBytes: Int64
        var assets: Int
    }

    private let pool = Mutex<DatabasePool?>(nil)
    private let seen = Mutex<[Sight]>([])

    var sights: [Sight] { seen.withLock { $0 } }

    func watch(_ pool: DatabasePool) { self.pool.withLock { $0 = pool } }

    func look(_ event: FaultyDisk.Event) {
        guard let pool = pool.withLock({ $0 }), [.sync, .syncDirectory, .unlink, .punch].contains(event.call) else {
            return
        }
        let row = try? pool.read { db in
            try Row.fetchOne(db, sql: "SELECT coalesce(sum(cached_bytes), 0), count(*) FROM assets")
        }
        seen.withLock { $0.append(Sight(call: event.call, claimedBytes: row?[0] ?? -1, assets: row?[1] ?? -1)) }
    }
}

@Suite struct CrashRuleTests {
    @Test("Bytes and directory entries are synced before the row claims them")
    func bytesAndNamesAreSyncedBeforeTheRowClaimsThem() async throws {
        let witness = Witness()
        let testStore = try TestStore(disk: FaultyDisk(observer: witness.look))
        witness.watch(testStore.store.catalog.pool)

        try testStore.fill(1, 0..<4096)
        try await testStore.commits.flush()

        #expect(
            witness.sights == [
                .init(call: .sync, claimedBytes: 0, assets: 0), .init(call: .syncDirectory, claimedBytes: 0, assets: 0),
            ])
    }

    @Test("Removals are committed before bytes are punched or unlinked")
    func removalsAreCommittedBeforeTheDiskGivesBytesUp() async throws {
        let witness = Witness()
        let testStore = try TestStore(disk: FaultyDisk(observer: witness.look))
        let file = try testStore.fill(1, 0..<8192)
        try await testStore.commits.flush()
        witness.watch(testStore.store.catalog.pool)

        try await testStore.commits.punch(file, [0..<4096])
        try await testStore.commits.remove([TestStore.id(1)])

        #expect(
            witness.sights == [
                .init(call: .punch, claimedBytes: 4096, assets: 1), .init(call: .unlink, claimedBytes: 0, assets: 0),
            ])
    }

    @Test("SQLite syncs every commit")
    func everyCommitIsSyncedBySQLite() async throws {
        let testStore = try TestStore()
        let mode = try await testStore.store.catalog.pool.writeWithoutTransaction { db in
            try Int.fetchOne(db, sql: "PRAGMA synchronous")
        }
        #expect(mode == 2)
    }

    @Test("A late report after a purge does not recreate the asset")
    func aLateReportAfterAPurgeDoesNotResurrectTheAsset() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<100)
        try await testStore.commits.flush()
        try testStore.grow(file, 100..<200)

        try await testStore.commits.remove([TestStore.id(1)])
        try testStore.grow(file, 200..<300)
        testStore.commits.touched(TestStore.id(1), at: Timestamp(seconds: 9), hits: 1)
        testStore.commits.refreshed(TestStore.record(1))
        try await testStore.commits.flush()

        #expect(try await testStore.store.load(TestStore.id(1)) == nil)
        #expect(try await testStore.store.catalog.totals() == CatalogTotals(assets: 0, extents: 0, cachedBytes: 0))
        #expect(try SystemDisk().status(of: try #require(file.path)) == nil)
    }

    @Test("An asset recreated during its removal survives")
    func anAssetThatBeginsAgainDuringItsRemovalLives() async throws {
        let duringSync = Mutex<(@Sendable () -> Void)?>(nil)
        let testStore = try TestStore(
            disk: FaultyDisk { event in
                guard event.call == .sync else { return }
                duringSync.withLock { action in
                    defer { action = nil }
                    return action
                }?()
            })
        let old = try testStore.fill(1, 0..<100)
        try await testStore.commits.flush()
        try testStore.fill(2, 0..<100)
        duringSync.withLock { $0 = { _ = try? testStore.fill(1, 0..<50) } }

        try await testStore.commits.remove([TestStore.id(1)])
        #expect(try await testStore.store.load(TestStore.id(1)) == nil)
        try await testStore.commits.flush()

        let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
        #expect(loaded.extents.runs == [0..<50])
        #expect(loaded.file?.path != old.path)
        #expect(try loaded.file?.bytes(0..<50) == TestStore.content(0..<50))
    }

    @Test("Restored work of a failed commit does not override newer work")
    func workOfAFailedCommitGoesUnderWhatCameSince() throws {
        let testStore = try TestStore()
        let file = try testStore.store.createFile(asset: TestStore.id(1), generation: 1)
        let serial = try #require(file.name).serial
        var earlier = PendingWork()
        earlier.begin(TestStore.record(1), file: file)
        earlier.grow(file, serial, 0..<100, at: .zero)
        earlier.use([TestStore.id(1): PendingWork.Use(at: Timestamp(seconds: 5), hits: 2)])
        earlier.remove(TestStore.id(2))

        var later = PendingWork()
        later.cut(file, serial, [60..<70], makingHoles: false)
        #expect(!later.frees)
        later.cut(file, serial, [20..<50], makingHoles: true)
        #expect(later.frees)
        later.grow(file, serial, 40..<45, at: .zero)
        later.use([TestStore.id(1): PendingWork.Use(at: Timestamp(seconds: 3), hits: 1)])
        later.restore(earlier)

        #expect(later.growth[serial]?.ranges.runs == [0..<20, 40..<45, 50..<60, 70..<100])
        #expect(later.byteCount == 65)
        #expect(later.cuts[serial]?.ranges.runs == [20..<50, 60..<70])
        #expect(later.cuts[serial]?.holes.runs == [20..<40, 45..<50])
        #expect(later.uses[TestStore.id(1)]?.hits == 3)
        #expect(later.uses[TestStore.id(1)]?.at == Timestamp(seconds: 5))
        #expect(later.removals == [TestStore.id(2)])

        var latest = PendingWork()
        latest.remove(TestStore.id(1))
        latest.restore(later.take())
        #expect(latest.begun.isEmpty && latest.growth.isEmpty && latest.cuts.isEmpty && latest.uses.isEmpty)
        #expect(latest.byteCount == 0)
        #expect(latest.abandoned == [try #require(file.name)])
        #expect(latest.removals == [TestStore.id(1), TestStore.id(2)])
    }

    @Test("Punching frees blocks and spares bytes written since the mark")
    func punchingFreesBlocksAndSparesWhatIsWrittenMeanwhile() async throws {
        let testStore = try TestStore()
        let size: Int64 = 1 << 20
        let file = try testStore.fill(1, 0..<size)
        try await testStore.commits.flush()
        let before = try file.diskBytes()

        file.markForPunch([0..<size / 2])
        try testStore.grow(file, 4096..<8192)
        #expect(try file.punchMarked(in: ByteRangeSet([0..<size])).isEmpty)

        #expect(try file.diskBytes() <= before - size / 2 + 8192)
        #expect(try file.bytes(4096..<8192) == TestStore.content(4096..<8192))
        #expect(try file.bytes(0..<4096) == [UInt8](repeating: 0, count: 4096))
        #expect(try file.size() == size)
    }

    @Test("A commit punches only its own ranges")
    func aCommitPunchesOnlyWhatItHasGivenUp() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<16384)
        try await testStore.commits.flush()

        file.markForPunch([8192..<16384])
        try await testStore.commits.punch(file, [0..<8192])

        #expect(try file.bytes(0..<8192).allSatisfy { $0 == 0 })
        #expect(try file.bytes(8192..<16384) == TestStore.content(8192..<16384))
    }

    @Test("A commit that exceeds the space stays pending until it fits")
    func aCommitThatDoesNotFitStaysPendingUntilItDoes() async throws {
        let testStore = try TestStore()
        let pool = testStore.store.catalog.pool
        try testStore.fill(1, 0..<100)
        try await pool.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages)")
        }
        for number in UInt64(2)...60 { try testStore.fill(number, 0..<100) }

        let error = await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        #expect(error?.code == .storageFull)
        #expect(
            try SystemDisk().status(of: testStore.store.layout.reserve) != nil,
            "The reserve must stay for commits that free space.")
        testStore.commits.discard(TestStore.id(1))
        await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        #expect(
            try SystemDisk().status(of: testStore.store.layout.reserve) == nil,
            "The reserve must be released for a commit that frees space.")

        try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        try await testStore.commits.flush()
        #expect(try await testStore.store.catalog.totals() == CatalogTotals(assets: 59, extents: 59, cachedBytes: 5900))
        #expect(try SystemDisk().status(of: testStore.store.layout.reserve)?.size == Int64(EmergencyReserve.size))
    }

    @Test("Bytes that could not be synced are never claimed")
    func bytesTheDiskCouldNotSyncAreNeverClaimed() async throws {
        let lost = Mutex<[FileName: ByteRangeSet]>([:])
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk) { name, ranges in lost.withLock { $0[name] = ranges } }
        let bad = try testStore.fill(1, 0..<100)
        try await testStore.commits.flush()
        try testStore.grow(bad, 100..<200)
        disk.fail(.sync, with: EIO)

        let error = await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        #expect(error?.code == .storageCorrupt)
        let name = try #require(bad.name)
        #expect(lost.withLock { $0 } == [name: ByteRangeSet([100..<200])])

        #expect(throws: CacheError.self) { try bad.write(at: 200, [1]) }
        testStore.commits.grew(bad, bad.kept(200..<300))
        await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        try await testStore.commits.flush()
        #expect(try await testStore.store.catalog.asset(TestStore.id(1))?.extents.runs == [0..<100])
    }
}
