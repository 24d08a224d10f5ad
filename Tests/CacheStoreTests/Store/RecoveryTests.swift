import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Logging
import Testing

@testable import CacheStore

/// What a start finds, and makes of it.
@Suite struct RecoveryTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func filled(_ isOrderly: Bool = true) async throws {
        let shelf = try Shelf(in: directory)
        try shelf.fill(1, 0..<600_000)
        try await shelf.commits.flush()
        try checkpoint(shelf)
        try shelf.store.close(isOrderly: isOrderly)
        // What lies in the log would cover what is damaged behind it.
        try SystemDisk().unlink(directory.path("data/catalog.sqlite-wal"))
    }

    private func checkpoint(_ shelf: Shelf) throws {
        try shelf.store.catalog.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    private func overwriteCatalog(with bytes: [UInt8], at offset: UInt64) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.path("data/catalog.sqlite")))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    @Test func aCatalogThatIsNoneIsPutAsideAndTheStoreBeginsEmpty() async throws {
        try await filled()
        try overwriteCatalog(with: [UInt8](repeating: 0x55, count: 8192), at: 0)

        let shelf = try Shelf(in: directory)
        let loss = try #require(shelf.store.loss)
        #expect(try SystemDisk().status(of: loss.path)?.size ?? 0 >= 8192)
        #expect(try await shelf.store.load(Shelf.id(1)) == nil)
        #expect(try directory.assetFiles("data").count == 1)
        let found = try await shelf.store.reconcile()

        #expect(found.removedFiles == 1)
        #expect(try directory.assetFiles("data") == [])
        try shelf.fill(1, 0..<1000)
        try await shelf.commits.flush()
        try shelf.store.close()
        #expect(try Shelf(in: directory).store.loss == nil)
    }

    @Test func anEmptyCatalogBesideFilesIsALoss() async throws {
        try await filled()
        try Data().write(to: URL(fileURLWithPath: directory.path("data/catalog.sqlite")))

        let shelf = try Shelf(in: directory)
        #expect(shelf.store.loss != nil)
        #expect(try await shelf.store.reconcile().removedFiles == 1)
        try shelf.store.close()
        #expect(try Shelf(in: directory).store.loss == nil)
    }

    @Test func whatIsNoFileInAnAssetsPlaceIsAsGoodAsGone() async throws {
        try await filled()
        let file = try #require(try directory.assetFiles("data").first)
        try SystemDisk().unlink(file)
        #expect(try SystemDisk().createDirectory(file))
        // Of no asset, and not to be removed as a file is.
        let shard = file.split(separator: "/").dropLast().joined(separator: "/")
        #expect(try SystemDisk().createDirectory("/\(shard)/\(Shelf.id(1))-7-100000009.bytes"))

        let shelf = try Shelf(in: directory)
        let loaded = try #require(try await shelf.store.load(Shelf.id(1)))
        #expect(loaded.file == nil && loaded.extents.isEmpty)
        let found = try await shelf.store.reconcile()

        #expect(found.removedFiles == 0)
        try shelf.fill(1, 0..<1000)
        try await shelf.commits.flush()
        #expect(try await shelf.store.load(Shelf.id(1))?.extents.runs == [0..<1000])
        try shelf.store.close()
    }

    @Test(arguments: ["file", "dangling link"])
    func whatLiesInThePlaceOfADirectoryIsPutAside(_ kind: String) async throws {
        try await filled()
        let shard = directory.path("data/assets/07")
        try FileManager.default.removeItem(atPath: shard)
        if kind == "file" {
            SystemDisk().close(try SystemDisk().open(shard, .create))
        } else {
            try FileManager.default.createSymbolicLink(atPath: shard, withDestinationPath: "nowhere")
        }

        let shelf = try Shelf(in: directory)
        #expect(try await shelf.store.reconcile().removedFiles == 0)
        let names = try SystemDisk().list(directory.path("data/assets"))
        #expect(names.count { $0.hasPrefix("07.aside-") } == 1 && names.count == 257)
        #expect(try SystemDisk().list(shard) == [])
        try shelf.store.close()
    }

    @Test func aPipeInAnAssetsPlaceIsAsGoodAsGone() async throws {
        try await filled()
        let file = try #require(try directory.assetFiles("data").first)
        try SystemDisk().unlink(file)
        #expect(mkfifo(file, 0o600) == 0)

        let shelf = try Shelf(in: directory)
        let loaded = try #require(try await shelf.store.load(Shelf.id(1)))
        #expect(loaded.file == nil && loaded.extents.isEmpty)
        try shelf.store.close()
    }

    @Test func aDirectoryThatCannotBeListedDoesNotStopTheOthers() async throws {
        try await filled()
        let disk = FaultyDisk()
        let shelf = try Shelf(in: directory, disk: disk)
        disk.fail(.list, with: EIO)
        let found = try await shelf.store.reconcile()

        #expect(found.emptiedRows == 0 && found.usedDiskBytes >= 600_000)
        try shelf.store.close()
    }

    @Test func aDirectoryThatSomebodyRemovedIsMadeAgain() async throws {
        let shelf = try Shelf(in: directory)
        try FileManager.default.removeItem(atPath: directory.path("data/assets"))
        try shelf.fill(1, 0..<1000)
        try await shelf.commits.flush()

        #expect(try await shelf.store.load(Shelf.id(1))?.extents.runs == [0..<1000])
        try FileManager.default.removeItem(atPath: directory.path("data"))
        let error = #expect(throws: CacheError.self) { try shelf.fill(2, 0..<1000) }
        #expect(error?.code == .storageCorrupt)
        let isInPlace = try shelf.store.isInPlace()
        #expect(!isInPlace)
    }

    @Test func filesGoBeforeTheirRowsWhereNothingElseMakesRoom() async throws {
        let shelf = try Shelf(in: directory)
        try shelf.fill(1, 0..<1000)
        let held = try shelf.fill(2, 0..<1000)
        try await shelf.commits.flush()
        #expect(try shelf.store.unlinkEarly([Shelf.id(1), Shelf.id(2), Shelf.id(3)]))
        #expect(try directory.assetFiles("data") == [held.path].compactMap(\.self))
        #expect(try !shelf.store.unlinkEarly([Shelf.id(2)]))

        let loaded = try #require(try await shelf.store.load(Shelf.id(1)))
        #expect(loaded.file == nil && loaded.extents.isEmpty)
        #expect(try held.bytes(0..<1000) == Shelf.content(0..<1000))
    }

    @Test func pagesThatMakeNoTablesAreFoundAfterAnEndOutOfOrder() async throws {
        try await filled(false)
        let size = try #require(try SystemDisk().status(of: directory.path("data/catalog.sqlite"))).size
        for page in 1..<UInt64(size) / 4096 { try overwriteCatalog(with: [0xEE, 0xEE, 0xEE, 0xEE], at: page * 4096) }

        let shelf = try Shelf(in: directory)

        #expect(shelf.store.loss != nil)
        try shelf.store.close()
    }

    @Test func aDamagedCatalogIsNotTouchedByThoseWhoMayNotLoseIt() async throws {
        try await filled()
        try overwriteCatalog(with: [UInt8](repeating: 0x55, count: 8192), at: 0)

        let error = #expect(throws: CacheError.self) {
            try Store.open(
                directory: directory.path("data"), mayLose: false, wallClock: Shelf.FixedClock(),
                logger: Logger(label: "test"))
        }
        #expect(error?.code == .storageCorrupt)
    }

    @Test func holesThatWereNotMadeAreMadeByTheNextStart() async throws {
        let shelf = try Shelf(in: directory)
        let file = try shelf.fill(1, length: 32 << 20, 0..<24 << 20)
        try await shelf.commits.flush()
        let serial = try #require(file.name?.serial)
        // As if the service had ended between the commit and the holes.
        try await shelf.store.catalog.write { db in
            try ExtentTable.remove([1 << 20..<20 << 20], from: serial, db)
            _ = try SumTable.release(ByteRangeSet([1 << 20..<20 << 20]), of: serial, look: { _ in nil }, db)
        }
        try shelf.store.close()

        let next = try Shelf(in: directory)
        let found = try await next.store.reconcile()

        #expect(found.trimmedFiles == 1)
        #expect(found.usedDiskBytes < 6 << 20)
        let loaded = try #require(try await next.store.load(Shelf.id(1)))
        #expect(loaded.extents.runs == [0..<1 << 20, 20 << 20..<24 << 20])
        for run in loaded.extents.runs {
            #expect(try #require(loaded.file).bytes(run).isSame(as: Shelf.content(run)))
        }
        try next.store.close()
    }

    @Test func aFileThatHasBeenWrittenToIsNotTrimmed() async throws {
        let shelf = try Shelf(in: directory)
        let file = try shelf.fill(1, length: 32 << 20, 0..<8 << 20)
        try await shelf.commits.flush()
        let serial = try #require(file.name?.serial)
        try await shelf.store.catalog.write { db in
            try ExtentTable.remove([1 << 20..<8 << 20], from: serial, db)
            _ = try SumTable.release(ByteRangeSet([1 << 20..<8 << 20]), of: serial, look: { _ in nil }, db)
        }
        try shelf.store.close()
        let next = try Shelf(in: directory)
        let opened = try #require(try await next.store.load(Shelf.id(1))?.file)
        try next.grow(opened, 3 << 20..<4 << 20)

        #expect(try await next.store.reconcile().trimmedFiles == 0)
        try await next.commits.flush()
        let loaded = try #require(try await next.store.load(Shelf.id(1)))
        #expect(loaded.extents.runs == [0..<1 << 20, 3 << 20..<4 << 20])
        #expect(try opened.bytes(3 << 20..<4 << 20).isSame(as: Shelf.content(3 << 20..<4 << 20)))
        try next.store.close()
    }

    @Test func whereNoHolesCanBeMadeTheStoreSaysSo() async throws {
        let disk = FaultyDisk()
        disk.pretendHoles(HoleSupport(areSparse: false, canBePunched: false))
        let shelf = try Shelf(in: directory, disk: disk)
        #expect(!shelf.store.holes.canBePunched)
        #expect(try SystemDisk().holes(in: directory.path) == HoleSupport(areSparse: true, canBePunched: true))
        // A file system that does not know the call gives nothing back, and nothing fails.
        let file = try shelf.fill(1, 0..<600_000)
        try await shelf.commits.flush()
        disk.fail(.punch, with: EOPNOTSUPP, isLasting: true)
        try await shelf.commits.punch(file, [0..<BlockSums.blockBytes])
        #expect(try await shelf.store.catalog.asset(Shelf.id(1))?.extents.runs == [BlockSums.blockBytes..<600_000])
        try shelf.store.close()
    }
}
