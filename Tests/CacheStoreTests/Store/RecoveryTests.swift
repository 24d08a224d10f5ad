import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Logging
import Testing

@testable import CacheStore

/// Recovery of a store at its next start.
@Suite struct RecoveryTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func filled(_ isOrderly: Bool = true) async throws {
        let testStore = try TestStore(in: directory)
        try testStore.fill(1, 0..<600_000)
        try await testStore.commits.flush()
        try checkpoint(testStore)
        try testStore.store.close(isOrderly: isOrderly)
        // The write-ahead log would hide damage to the database file.
        try SystemDisk().unlink(directory.path("data/catalog.sqlite-wal"))
    }

    private func checkpoint(_ testStore: TestStore) throws {
        try testStore.store.catalog.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    private func overwriteCatalog(with bytes: [UInt8], at offset: UInt64) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.path("data/catalog.sqlite")))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    @Test("A file that is no catalog is quarantined and the store starts empty")
    func aCatalogThatIsNoneIsPutAsideAndTheStoreBeginsEmpty() async throws {
        try await filled()
        try overwriteCatalog(with: [UInt8](repeating: 0x55, count: 8192), at: 0)

        let testStore = try TestStore(in: directory)
        let loss = try #require(testStore.store.loss)
        #expect(try SystemDisk().status(of: loss.path)?.size ?? 0 >= 8192)
        #expect(try await testStore.store.load(TestStore.id(1)) == nil)
        #expect(try directory.assetFiles("data").count == 1)
        let found = try await testStore.store.reconcile()

        #expect(found.removedFiles == 1)
        #expect(try directory.assetFiles("data") == [])
        try testStore.fill(1, 0..<1000)
        try await testStore.commits.flush()
        try testStore.store.close()
        #expect(try TestStore(in: directory).store.loss == nil)
    }

    @Test("An empty catalog beside asset files is reported as a catalog loss")
    func anEmptyCatalogBesideFilesIsALoss() async throws {
        try await filled()
        try Data().write(to: URL(fileURLWithPath: directory.path("data/catalog.sqlite")))

        let testStore = try TestStore(in: directory)
        #expect(testStore.store.loss != nil)
        #expect(try await testStore.store.reconcile().removedFiles == 1)
        try testStore.store.close()
        #expect(try TestStore(in: directory).store.loss == nil)
    }

    @Test("A directory in place of an asset file counts as a missing file")
    func whatIsNoFileInAnAssetsPlaceIsAsGoodAsGone() async throws {
        try await filled()
        let file = try #require(try directory.assetFiles("data").first)
        try SystemDisk().unlink(file)
        #expect(try SystemDisk().createDirectory(file))
        // A directory with the name of an unclaimed file; it cannot be removed as a file.
        let shard = file.split(separator: "/").dropLast().joined(separator: "/")
        #expect(try SystemDisk().createDirectory("/\(shard)/\(TestStore.id(1))-7-100000009.bytes"))

        let testStore = try TestStore(in: directory)
        let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
        #expect(loaded.file == nil && loaded.extents.isEmpty)
        let found = try await testStore.store.reconcile()

        #expect(found.removedFiles == 0)
        try testStore.fill(1, 0..<1000)
        try await testStore.commits.flush()
        #expect(try await testStore.store.load(TestStore.id(1))?.extents.runs == [0..<1000])
        try testStore.store.close()
    }

    @Test("A file or symlink in place of a shard directory is quarantined", arguments: ["file", "dangling link"])
    func whatLiesInThePlaceOfADirectoryIsPutAside(_ kind: String) async throws {
        try await filled()
        let shard = directory.path("data/assets/07")
        try FileManager.default.removeItem(atPath: shard)
        if kind == "file" {
            SystemDisk().close(try SystemDisk().open(shard, .create))
        } else {
            try FileManager.default.createSymbolicLink(atPath: shard, withDestinationPath: "nowhere")
        }

        let testStore = try TestStore(in: directory)
        #expect(try await testStore.store.reconcile().removedFiles == 0)
        let names = try SystemDisk().list(directory.path("data/assets"))
        #expect(names.count { $0.hasPrefix("07.aside-") } == 1 && names.count == 257)
        #expect(try SystemDisk().list(shard) == [])
        try testStore.store.close()
    }

    @Test("A link to itself beside the shard directories does not prevent a start")
    func foreignLink() async throws {
        try await filled()
        let link = directory.path("data/assets/loop")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "loop")
        try TestStore(in: directory).store.close()
    }

    @Test("A named pipe in place of an asset file counts as a missing file")
    func aPipeInAnAssetsPlaceIsAsGoodAsGone() async throws {
        try await filled()
        let file = try #require(try directory.assetFiles("data").first)
        try SystemDisk().unlink(file)
        #expect(mkfifo(file, 0o600) == 0)

        let testStore = try TestStore(in: directory)
        let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
        #expect(loaded.file == nil && loaded.extents.isEmpty)
        try testStore.store.close()
    }

    @Test("A shard directory that cannot be listed does not stop reconciliation")
    func aDirectoryThatCannotBeListedDoesNotStopTheOthers() async throws {
        try await filled()
        let disk = FaultyDisk()
        let testStore = try TestStore(in: directory, disk: disk)
        disk.fail(.list, with: EIO)
        let found = try await testStore.store.reconcile()

        #expect(found.emptiedRows == 0 && found.usedDiskBytes >= 600_000)
        try testStore.store.close()
    }

    @Test("A removed assets directory is recreated")
    func aDirectoryThatSomebodyRemovedIsMadeAgain() async throws {
        let testStore = try TestStore(in: directory)
        try FileManager.default.removeItem(atPath: directory.path("data/assets"))
        try testStore.fill(1, 0..<1000)
        try await testStore.commits.flush()

        #expect(try await testStore.store.load(TestStore.id(1))?.extents.runs == [0..<1000])
        try FileManager.default.removeItem(atPath: directory.path("data"))
        let error = #expect(throws: CacheError.self) { try testStore.fill(2, 0..<1000) }
        #expect(error?.code == .storageCorrupt)
        let isInPlace = try testStore.store.isInPlace()
        #expect(!isInPlace)
    }

    @Test("Files can be unlinked before their rows when the disk is full")
    func filesGoBeforeTheirRowsWhereNothingElseMakesRoom() async throws {
        let testStore = try TestStore(in: directory)
        try testStore.fill(1, 0..<1000)
        let held = try testStore.fill(2, 0..<1000)
        try await testStore.commits.flush()
        #expect(try testStore.store.unlinkEarly([TestStore.id(1), TestStore.id(2), TestStore.id(3)]))
        #expect(try directory.assetFiles("data") == [held.path].compactMap(\.self))
        #expect(try !testStore.store.unlinkEarly([TestStore.id(2)]))

        let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
        #expect(loaded.file == nil && loaded.extents.isEmpty)
        #expect(try held.bytes(0..<1000) == TestStore.content(0..<1000))
    }

    @Test("Catalog pages that form no tables are detected after an unclean shutdown")
    func pagesThatMakeNoTablesAreFoundAfterAnEndOutOfOrder() async throws {
        try await filled(false)
        let size = try #require(try SystemDisk().status(of: directory.path("data/catalog.sqlite"))).size
        for page in 1..<UInt64(size) / 4096 { try overwriteCatalog(with: [0xEE, 0xEE, 0xEE, 0xEE], at: page * 4096) }

        let testStore = try TestStore(in: directory)

        #expect(testStore.store.loss != nil)
        try testStore.store.close()
    }

    @Test("A damaged catalog is left unchanged when loss is not allowed")
    func aDamagedCatalogIsNotTouchedByThoseWhoMayNotLoseIt() async throws {
        try await filled()
        try overwriteCatalog(with: [UInt8](repeating: 0x55, count: 8192), at: 0)

        let error = #expect(throws: CacheError.self) {
            try Store.open(
                directory: directory.path("data"), mayLose: false, wallClock: TestStore.FixedClock(),
                logger: Logger(label: "test"))
        }
        #expect(error?.code == .storageCorrupt)
    }

    @Test("Punches left out by a crash are made up at the next start")
    func holesThatWereNotMadeAreMadeByTheNextStart() async throws {
        let testStore = try TestStore(in: directory)
        let file = try testStore.fill(1, length: 32 << 20, 0..<24 << 20)
        try await testStore.commits.flush()
        let serial = try #require(file.name?.serial)
        // Simulate a crash between the commit and the punches.
        try await testStore.store.catalog.write { db in
            try ExtentTable.remove([1 << 20..<20 << 20], from: serial, db)
            _ = try ChecksumTable.release(ByteRangeSet([1 << 20..<20 << 20]), of: serial, look: { _ in nil }, db)
        }
        try testStore.store.close()

        let next = try TestStore(in: directory)
        let found = try await next.store.reconcile()

        #expect(found.trimmedFiles == 1)
        #expect(found.usedDiskBytes < 6 << 20)
        let loaded = try #require(try await next.store.load(TestStore.id(1)))
        let kept: [ByteRange] = [0..<1 << 20, 20 << 20..<24 << 20]
        #expect(loaded.extents.runs == kept)
        for run in loaded.extents.runs {
            #expect(try #require(loaded.file).bytes(run).isSame(as: TestStore.content(run)))
        }
        try next.store.close()
    }

    @Test("A file written to since the start is not trimmed")
    func aFileThatHasBeenWrittenToIsNotTrimmed() async throws {
        let testStore = try TestStore(in: directory)
        let file = try testStore.fill(1, length: 32 << 20, 0..<8 << 20)
        try await testStore.commits.flush()
        let serial = try #require(file.name?.serial)
        try await testStore.store.catalog.write { db in
            try ExtentTable.remove([1 << 20..<8 << 20], from: serial, db)
            _ = try ChecksumTable.release(ByteRangeSet([1 << 20..<8 << 20]), of: serial, look: { _ in nil }, db)
        }
        try testStore.store.close()
        let next = try TestStore(in: directory)
        let opened = try #require(try await next.store.load(TestStore.id(1))?.file)
        try next.grow(opened, 3 << 20..<4 << 20)

        #expect(try await next.store.reconcile().trimmedFiles == 0)
        try await next.commits.flush()
        let loaded = try #require(try await next.store.load(TestStore.id(1)))
        let kept: [ByteRange] = [0..<1 << 20, 3 << 20..<4 << 20]
        #expect(loaded.extents.runs == kept)
        #expect(try opened.bytes(3 << 20..<4 << 20).isSame(as: TestStore.content(3 << 20..<4 << 20)))
        try next.store.close()
    }

    @Test("A file system without hole punching is reported")
    func whereNoHolesCanBeMadeTheStoreSaysSo() async throws {
        let disk = FaultyDisk()
        disk.pretendHoles(HoleSupport(areSparse: false, canBePunched: false))
        let testStore = try TestStore(in: directory, disk: disk)
        #expect(!testStore.store.holes.canBePunched)
        #expect(try SystemDisk().holes(in: directory.path) == HoleSupport(areSparse: true, canBePunched: true))
        // On a file system without hole punching a punch frees nothing and does not fail.
        let file = try testStore.fill(1, 0..<600_000)
        try await testStore.commits.flush()
        disk.fail(.punch, with: EOPNOTSUPP, isLasting: true)
        try await testStore.commits.punch(file, [0..<BlockChecksums.blockBytes])
        #expect(
            try await testStore.store.catalog.asset(TestStore.id(1))?.extents.runs == [
                BlockChecksums.blockBytes..<600_000
            ])
        try testStore.store.close()
    }
}
