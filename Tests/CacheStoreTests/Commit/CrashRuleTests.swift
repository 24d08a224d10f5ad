import CacheCore
import CacheTestKit
import GRDB
import Glibc
import Synchronization
import Testing

@testable import CacheStore

/// What the catalog claimed at the moment of each call on the disk.
private final class Witness: Sendable {
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
    @Test func bytesAndNamesAreSyncedBeforeTheRowClaimsThem() async throws {
        let witness = Witness()
        let shelf = try Shelf(disk: FaultyDisk(observer: witness.look))
        witness.watch(shelf.store.catalog.pool)

        try shelf.fill(1, 0..<4096)
        try await shelf.commits.flush()

        #expect(
            witness.sights == [
                .init(call: .sync, claimedBytes: 0, assets: 0), .init(call: .syncDirectory, claimedBytes: 0, assets: 0),
            ])
    }

    @Test func removalsAreCommittedBeforeTheDiskGivesBytesUp() async throws {
        let witness = Witness()
        let shelf = try Shelf(disk: FaultyDisk(observer: witness.look))
        let file = try shelf.fill(1, 0..<8192)
        try await shelf.commits.flush()
        witness.watch(shelf.store.catalog.pool)

        try await shelf.commits.punch(file, [0..<4096])
        try await shelf.commits.remove([Shelf.id(1)])

        #expect(
            witness.sights == [
                .init(call: .punch, claimedBytes: 4096, assets: 1), .init(call: .unlink, claimedBytes: 0, assets: 0),
            ])
    }

    @Test func everyCommitIsSyncedBySQLite() async throws {
        let shelf = try Shelf()
        let mode = try await shelf.store.catalog.pool.writeWithoutTransaction { db in
            try Int.fetchOne(db, sql: "PRAGMA synchronous")
        }
        #expect(mode == 2)
    }

    @Test func aLateReportAfterAPurgeDoesNotResurrectTheAsset() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<100)
        try await shelf.commits.flush()
        try shelf.grow(file, 100..<200)

        try await shelf.commits.remove([Shelf.id(1)])
        try shelf.grow(file, 200..<300)
        shelf.commits.touched(Shelf.id(1), at: Timestamp(seconds: 9), hits: 1)
        shelf.commits.refreshed(Shelf.record(1))
        try await shelf.commits.flush()

        #expect(try await shelf.store.load(Shelf.id(1)) == nil)
        #expect(try await shelf.store.catalog.totals() == CatalogTotals(assets: 0, extents: 0, cachedBytes: 0))
        #expect(try SystemDisk().status(of: try #require(file.path)) == nil)
    }

    @Test func anAssetThatBeginsAgainDuringItsRemovalLives() async throws {
        let duringSync = Mutex<(@Sendable () -> Void)?>(nil)
        let shelf = try Shelf(
            disk: FaultyDisk { event in
                guard event.call == .sync else { return }
                duringSync.withLock { action in
                    defer { action = nil }
                    return action
                }?()
            })
        let old = try shelf.fill(1, 0..<100)
        try await shelf.commits.flush()
        try shelf.fill(2, 0..<100)
        duringSync.withLock { $0 = { _ = try? shelf.fill(1, 0..<50) } }

        try await shelf.commits.remove([Shelf.id(1)])
        #expect(try await shelf.store.load(Shelf.id(1)) == nil)
        try await shelf.commits.flush()

        let loaded = try #require(try await shelf.store.load(Shelf.id(1)))
        #expect(loaded.extents.runs == [0..<50])
        #expect(loaded.file?.path != old.path)
        #expect(try loaded.file?.bytes(0..<50) == Shelf.content(0..<50))
    }

    @Test func workOfAFailedCommitGoesUnderWhatCameSince() throws {
        let shelf = try Shelf()
        let file = try shelf.store.createFile(asset: Shelf.id(1), generation: 1)
        let serial = try #require(file.name).serial
        var earlier = PendingWork()
        earlier.begin(Shelf.record(1), file: file)
        earlier.grow(file, serial, 0..<100)
        earlier.use([Shelf.id(1): PendingWork.Use(at: Timestamp(seconds: 5), hits: 2)])
        earlier.remove(Shelf.id(2))

        var later = PendingWork()
        later.cut(file, serial, [60..<70], makingHoles: false)
        #expect(!later.frees)
        later.cut(file, serial, [20..<50], makingHoles: true)
        #expect(later.frees)
        later.grow(file, serial, 40..<45)
        later.use([Shelf.id(1): PendingWork.Use(at: Timestamp(seconds: 3), hits: 1)])
        later.restore(earlier)

        #expect(later.growth[serial]?.ranges.runs == [0..<20, 40..<45, 50..<60, 70..<100])
        #expect(later.byteCount == 65)
        #expect(later.cuts[serial]?.ranges.runs == [20..<50, 60..<70])
        #expect(later.cuts[serial]?.holes.runs == [20..<40, 45..<50])
        #expect(later.uses[Shelf.id(1)]?.hits == 3)
        #expect(later.uses[Shelf.id(1)]?.at == Timestamp(seconds: 5))
        #expect(later.removals == [Shelf.id(2)])

        var latest = PendingWork()
        latest.remove(Shelf.id(1))
        latest.restore(later.take())
        #expect(latest.begun.isEmpty && latest.growth.isEmpty && latest.cuts.isEmpty && latest.uses.isEmpty)
        #expect(latest.byteCount == 0)
        #expect(latest.abandoned == [try #require(file.name)])
        #expect(latest.removals == [Shelf.id(1), Shelf.id(2)])
    }

    @Test func punchingFreesBlocksAndSparesWhatIsWrittenMeanwhile() async throws {
        let shelf = try Shelf()
        let size: Int64 = 1 << 20
        let file = try shelf.fill(1, 0..<size)
        try await shelf.commits.flush()
        let before = try file.diskBytes()

        file.doom([0..<size / 2])
        try shelf.grow(file, 4096..<8192)
        #expect(try file.punchDoomed(in: ByteRangeSet([0..<size])).isEmpty)

        #expect(try file.diskBytes() <= before - size / 2 + 8192)
        #expect(try file.bytes(4096..<8192) == Shelf.content(4096..<8192))
        #expect(try file.bytes(0..<4096) == [UInt8](repeating: 0, count: 4096))
        #expect(try file.size() == size)
    }

    @Test func aCommitPunchesOnlyWhatItHasGivenUp() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<16384)
        try await shelf.commits.flush()

        file.doom([8192..<16384])
        try await shelf.commits.punch(file, [0..<8192])

        #expect(try file.bytes(0..<8192).allSatisfy { $0 == 0 })
        #expect(try file.bytes(8192..<16384) == Shelf.content(8192..<16384))
    }

    @Test func aCommitThatDoesNotFitStaysPendingUntilItDoes() async throws {
        let shelf = try Shelf()
        let pool = shelf.store.catalog.pool
        try shelf.fill(1, 0..<100)
        try await pool.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages)")
        }
        for number in UInt64(2)...60 { try shelf.fill(number, 0..<100) }

        let error = await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        #expect(error?.code == .storageFull)
        #expect(try SystemDisk().status(of: shelf.store.layout.reserve) != nil, "kept for what frees space")
        shelf.commits.discard(Shelf.id(1))
        await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        #expect(try SystemDisk().status(of: shelf.store.layout.reserve) == nil, "given back to make room")

        try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        try await shelf.commits.flush()
        #expect(try await shelf.store.catalog.totals() == CatalogTotals(assets: 59, extents: 59, cachedBytes: 5900))
        #expect(try SystemDisk().status(of: shelf.store.layout.reserve)?.size == Int64(Reserve.size))
    }

    @Test func bytesTheDiskCouldNotSyncAreNeverClaimed() async throws {
        let lost = Mutex<[FileName: ByteRangeSet]>([:])
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk) { name, ranges in lost.withLock { $0[name] = ranges } }
        let bad = try shelf.fill(1, 0..<100)
        try await shelf.commits.flush()
        try shelf.grow(bad, 100..<200)
        disk.fail(.sync, with: EIO)

        let error = await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        #expect(error?.code == .storageCorrupt)
        let name = try #require(bad.name)
        #expect(lost.withLock { $0 } == [name: ByteRangeSet([100..<200])])

        #expect(throws: CacheError.self) { try bad.write(at: 200, [1]) }
        shelf.commits.grew(bad, bad.kept(200..<300))
        await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        try await shelf.commits.flush()
        #expect(try await shelf.store.catalog.asset(Shelf.id(1))?.extents.runs == [0..<100])
    }
}
