import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CacheStore
import TestChance

/// Consistency of the checksums in the catalog with the bytes on disk.
@Suite struct StoredSumsTests {
    @Test("Every claimed byte has a checksum after random fills, cuts, commits and kills", arguments: [false, true])
    func everyClaimedByteHasASumWhateverIsFilledCutCommittedAndKilled(_ isEncrypted: Bool) async throws {
        for seed in UInt64(1)...6 {
            let directory = try TemporaryDirectory()
            var random = SeededRandom(seed: seed)
            var serial: SparseFile?
            for life in 0..<4 {
                let testStore = try TestStore(in: directory, masterKeys: TestStore.masterKeys("k1"))
                serial = try await testStore.store.load(TestStore.id(1))?.file
                let file = try serial ?? testStore.fill(1, length: 4 << 20, isEncrypted: isEncrypted)
                // The bytes that the last life had cut and written again without a commit.
                try await Self.check(testStore, file, "seed \(seed), start of life \(life)")
                for step in 0..<25 {
                    let start = Int64(random.next() % (3 << 20))
                    let lengths: [Int64] = [10, 5_000, BlockChecksums.blockBytes, 900_000]
                    let range = start..<start + 1 + Int64(random.next() % UInt64(lengths[Int(random.next() % 4)]))
                    switch random.next() % 6 {
                    case 0..<3: try testStore.grow(file, range)
                    case 3: testStore.commits.cut(file, [range])
                    default: try await testStore.commits.flush()
                    }
                    if step % 5 == 4 {
                        try await Self.check(testStore, file, "seed \(seed), life \(life), step \(step)")
                    }
                }
                try testStore.store.close()
            }
        }
    }

    private static func check(_ testStore: TestStore, _ file: SparseFile, _ label: Comment) async throws {
        try await testStore.commits.flush()
        let serial = try #require(file.name?.serial)
        let (extents, found) = try await testStore.store.catalog.read { db in
            (try ExtentTable.extents(of: serial, db), try ChecksumTable.sums(of: serial, around: 0..<4 << 20, db))
        }
        #expect(found.damagedRows == 0, label)
        #expect(ByteRangeSet(found.sums.pieces.map(\.range)) == extents, label)
        for piece in found.sums.pieces { #expect(try file.sum(of: piece.range) == piece.sum, label) }
    }

    @Test("Bytes of a removed asset are not judged")
    func bytesOfARemovedAsset() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<400_000)
        // The row of a new asset is not committed yet.
        try damage(testStore.store.layout.path(of: try #require(file.name)), at: 300_000)
        #expect(try testStore.commits.check(300_000..<300_001, of: file) == .bad([262_144..<400_000]))
        try await testStore.commits.flush()
        testStore.commits.discard(TestStore.id(1))
        #expect(try testStore.commits.check(0..<1000, of: file) == .right([0..<BlockChecksums.blockBytes]))
        try await testStore.commits.flush()
        let error = #expect(throws: CacheError.self) { try testStore.commits.check(0..<1000, of: file) }
        #expect(error?.code == .assetChanged)
    }

    @Test("Bytes are verified before and after the commit")
    func bytesAreReadWithTheirSumsBeforeAndAfterTheCommit() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 100..<400_000)
        #expect(try testStore.read(file, 1000..<2000) == .right([100..<BlockChecksums.blockBytes]))

        try await testStore.commits.flush()

        #expect(try testStore.read(file, 1000..<2000) == .right([100..<BlockChecksums.blockBytes]))
        #expect(try testStore.read(file, 300_000..<300_001) == .right([BlockChecksums.blockBytes..<400_000]))
        #expect(try testStore.read(file, 390_000..<410_000) == .bad([400_000..<410_000]))
    }

    @Test("A flipped bit and a truncated file are detected")
    func aFlippedBitAndAShortFileAreFound() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<600_000)
        try await testStore.commits.flush()
        try damage(#require(file.path), at: 300_000)

        #expect(try testStore.read(file, 0..<10) == .right([0..<BlockChecksums.blockBytes]))
        #expect(
            try testStore.read(file, 270_000..<270_010)
                == .bad([BlockChecksums.blockBytes..<2 * BlockChecksums.blockBytes]))

        let descriptor = try SystemDisk().open(try #require(file.path), .readWrite)
        try SystemDisk().truncate(descriptor, to: 599_000)
        SystemDisk().close(descriptor)

        #expect(try testStore.read(file, 590_000..<590_010) == .bad([2 * BlockChecksums.blockBytes..<600_000]))
    }

    @Test("A partial punch of a damaged block invalidates the rest of the block")
    func whatIsLeftOfADamagedPieceIsGivenUpWithTheRestOfIt() async throws {
        let spoiled = Noted()
        let testStore = try TestStore(spoiled: { _, ranges in spoiled.add(ranges) })
        let file = try testStore.fill(1, 0..<600_000)
        try await testStore.commits.flush()
        try damage(#require(file.path), at: 300_000)

        try await testStore.commits.punch(file, [280_000..<290_000])

        let rest = [BlockChecksums.blockBytes..<280_000, 290_000..<2 * BlockChecksums.blockBytes]
        #expect(spoiled.all == rest)
        let stored = try await testStore.store.catalog.asset(TestStore.id(1))
        #expect(stored?.extents.runs == [0..<BlockChecksums.blockBytes, 2 * BlockChecksums.blockBytes..<600_000])
    }

    @Test("A file stored before checksums existed is accepted")
    func aStoreFromBeforeThereWereSumsIsBelieved() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<1000)
        try await testStore.commits.flush()
        let serial = try #require(file.name?.serial)
        try await testStore.store.catalog.write { db in
            try db.execute(sql: "DELETE FROM sums")
            try db.execute(sql: "INSERT INTO unsummed VALUES (?)", arguments: [serial])
        }

        #expect(try testStore.read(file, 0..<10) == .right([0..<10]))
    }

    @Test("A missing checksum counts as damage")
    func aSumThatIsMissingIsDamage() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<1000)
        try await testStore.commits.flush()
        try await testStore.store.catalog.write { db in try db.execute(sql: "UPDATE sums SET sums = zeroblob(9)") }

        #expect(try testStore.read(file, 0..<10) == .bad([0..<10]))
    }

    @Test("An asset row with a wrong checksum is removed")
    func anAssetsRowThatIsNotWhatWasWrittenIsTakenOut() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, 0..<1000)
        try testStore.fill(2, 0..<1000)
        try await testStore.commits.flush()
        try await testStore.store.catalog.write { db in
            try db.execute(sql: "DROP TRIGGER assets_updated")
            try db.execute(
                sql: "UPDATE assets SET length = length + 1 WHERE id = ?", arguments: [RowCoding.blob(TestStore.id(1))])
        }

        #expect(try await testStore.store.load(TestStore.id(1)) == nil)
        #expect(try await testStore.store.load(TestStore.id(2)) != nil)
        #expect(try await testStore.store.catalog.totals().assets == 1)
    }

    @Test("Bytes are suspect after an unclean shutdown until they are verified")
    func bytesAreSuspectAfterAnEndOutOfOrderUntilTheyHaveBeenChecked() async throws {
        let directory = try TemporaryDirectory()
        func isSuspect() async throws -> (now: Bool, testStore: TestStore) {
            let testStore = try TestStore(in: directory)
            return (try #require(try await testStore.store.load(TestStore.id(1))).isSuspect, testStore)
        }
        let first = try TestStore(in: directory)
        try first.fill(1, 0..<1000)
        try await first.commits.flush()
        let loaded = try await first.store.load(TestStore.id(1))
        #expect(loaded?.isSuspect == false && loaded?.isUnverified == false)
        try first.store.close()
        let second = try await isSuspect()
        #expect(!second.now)
        #expect(try await second.testStore.store.load(TestStore.id(1))?.isUnverified == true)
        try second.testStore.store.close(isOrderly: false)
        let third = try await isSuspect()
        #expect(third.now)
        try third.testStore.store.close()
        let fourth = try await isSuspect()
        #expect(fourth.now)
        let name = try #require(try await fourth.testStore.store.load(TestStore.id(1))?.file?.name)
        try await fourth.testStore.store.catalog.checked(name)
        #expect(try await fourth.testStore.store.load(TestStore.id(1))?.isUnverified == false)
        try fourth.testStore.store.close()

        let fifth = try await isSuspect()
        #expect(!fifth.now)
        try fifth.testStore.store.close()
    }
}

extension TestStore {
    fileprivate func read(_ file: SparseFile, _ range: ByteRange) throws -> CheckedBytes {
        var bytes = [UInt8](repeating: 0, count: Int(range.length))
        let outcome = bytes.withUnsafeMutableBytes { buffer in
            Result { try commits.read(range, of: file, into: buffer) }
        }
        if case .success(.right) = outcome { #expect(bytes == TestStore.content(range)) }
        return try outcome.get()
    }
}

/// Collects the ranges reported to a callback.
private final class Noted: Sendable {
    private let runs = Mutex([ByteRange]())

    func add(_ more: [ByteRange]) { runs.withLock { $0 += more } }
    var all: [ByteRange] { runs.withLock { $0 } }
}
