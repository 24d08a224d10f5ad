import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Synchronization
import Testing

@testable import CacheStore
import TestChance

/// Sums as the catalog has them, against what is on disk.
@Suite struct StoredSumsTests {
    @Test func everyClaimedByteHasASumWhateverIsFilledCutCommittedAndKilled() async throws {
        for seed in UInt64(1)...6 {
            let directory = try TemporaryDirectory()
            var random = SeededRandom(seed: seed)
            var serial: SparseFile?
            for life in 0..<4 {
                let shelf = try Shelf(in: directory)
                serial = try await shelf.store.load(Shelf.id(1))?.file
                let file = try serial ?? shelf.fill(1, length: 4 << 20)
                for step in 0..<25 {
                    let start = Int64(random.next() % (3 << 20))
                    let lengths: [Int64] = [10, 5_000, BlockSums.blockBytes, 900_000]
                    let range = start..<start + 1 + Int64(random.next() % UInt64(lengths[Int(random.next() % 4)]))
                    switch random.next() % 6 {
                    case 0..<3: try shelf.grow(file, range)
                    case 3: shelf.commits.cut(file, [range])
                    default: try await shelf.commits.flush()
                    }
                    if step % 5 == 4 { try await Self.check(shelf, file, "seed \(seed), life \(life), step \(step)") }
                }
                try shelf.store.close()
            }
        }
    }

    private static func check(_ shelf: Shelf, _ file: SparseFile, _ label: Comment) async throws {
        try await shelf.commits.flush()
        let serial = try #require(file.name?.serial)
        let (extents, found) = try await shelf.store.catalog.read { db in
            (try ExtentTable.extents(of: serial, db), try SumTable.sums(of: serial, around: 0..<4 << 20, db))
        }
        #expect(found.damagedRows == 0, label)
        #expect(ByteRangeSet(found.sums.pieces.map(\.range)) == extents, label)
        for piece in found.sums.pieces { #expect(try file.sum(of: piece.range) == piece.sum, label) }
    }

    @Test func bytesAreReadWithTheirSumsBeforeAndAfterTheCommit() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 100..<400_000)
        #expect(try shelf.read(file, 1000..<2000) == .right([100..<BlockSums.blockBytes]))

        try await shelf.commits.flush()

        #expect(try shelf.read(file, 1000..<2000) == .right([100..<BlockSums.blockBytes]))
        #expect(try shelf.read(file, 300_000..<300_001) == .right([BlockSums.blockBytes..<400_000]))
        #expect(try shelf.read(file, 390_000..<410_000) == .bad([400_000..<410_000]))
    }

    @Test func aFlippedBitAndAShortFileAreFound() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<600_000)
        try await shelf.commits.flush()
        try damage(#require(file.path), at: 300_000)

        #expect(try shelf.read(file, 0..<10) == .right([0..<BlockSums.blockBytes]))
        #expect(try shelf.read(file, 270_000..<270_010) == .bad([BlockSums.blockBytes..<2 * BlockSums.blockBytes]))

        let descriptor = try SystemDisk().open(try #require(file.path), .readWrite)
        try SystemDisk().truncate(descriptor, to: 599_000)
        SystemDisk().close(descriptor)

        #expect(try shelf.read(file, 590_000..<590_010) == .bad([2 * BlockSums.blockBytes..<600_000]))
    }

    @Test func whatIsLeftOfADamagedPieceIsGivenUpWithTheRestOfIt() async throws {
        let spoiled = Noted()
        let shelf = try Shelf(spoiled: { _, ranges in spoiled.add(ranges) })
        let file = try shelf.fill(1, 0..<600_000)
        try await shelf.commits.flush()
        try damage(#require(file.path), at: 300_000)

        try await shelf.commits.punch(file, [280_000..<290_000])

        let rest = [BlockSums.blockBytes..<280_000, 290_000..<2 * BlockSums.blockBytes]
        #expect(spoiled.all == rest)
        let stored = try await shelf.store.catalog.asset(Shelf.id(1))
        #expect(stored?.extents.runs == [0..<BlockSums.blockBytes, 2 * BlockSums.blockBytes..<600_000])
    }

    @Test func aStoreFromBeforeThereWereSumsIsBelieved() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<1000)
        try await shelf.commits.flush()
        let serial = try #require(file.name?.serial)
        try await shelf.store.catalog.write { db in
            try db.execute(sql: "DELETE FROM sums")
            try db.execute(sql: "INSERT INTO unsummed VALUES (?)", arguments: [serial])
        }

        #expect(try shelf.read(file, 0..<10) == .right([0..<10]))
    }

    @Test func aSumThatIsMissingIsDamage() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<1000)
        try await shelf.commits.flush()
        try await shelf.store.catalog.write { db in try db.execute(sql: "UPDATE sums SET sums = zeroblob(9)") }

        #expect(try shelf.read(file, 0..<10) == .bad([0..<10]))
    }

    @Test func anAssetsRowThatIsNotWhatWasWrittenIsTakenOut() async throws {
        let shelf = try Shelf()
        try shelf.fill(1, 0..<1000)
        try shelf.fill(2, 0..<1000)
        try await shelf.commits.flush()
        try await shelf.store.catalog.write { db in
            try db.execute(sql: "DROP TRIGGER assets_updated")
            try db.execute(
                sql: "UPDATE assets SET length = length + 1 WHERE id = ?", arguments: [RowCoding.blob(Shelf.id(1))])
        }

        #expect(try await shelf.store.load(Shelf.id(1)) == nil)
        #expect(try await shelf.store.load(Shelf.id(2)) != nil)
        #expect(try await shelf.store.catalog.totals().assets == 1)
    }

    @Test func bytesAreSuspectAfterAnEndOutOfOrderUntilTheyHaveBeenChecked() async throws {
        let directory = try TemporaryDirectory()
        func isSuspect() async throws -> (now: Bool, shelf: Shelf) {
            let shelf = try Shelf(in: directory)
            return (try #require(try await shelf.store.load(Shelf.id(1))).isSuspect, shelf)
        }
        let first = try Shelf(in: directory)
        try first.fill(1, 0..<1000)
        try await first.commits.flush()
        #expect(try await first.store.load(Shelf.id(1))?.isSuspect == false)
        try first.store.close()
        let second = try await isSuspect()
        #expect(!second.now)
        try second.shelf.store.close(isOrderly: false)
        let third = try await isSuspect()
        #expect(third.now)
        try third.shelf.store.close()
        let fourth = try await isSuspect()
        #expect(fourth.now)
        let name = try #require(try await fourth.shelf.store.load(Shelf.id(1))?.file?.name)
        try await fourth.shelf.store.catalog.checked(name)
        try fourth.shelf.store.close()

        let fifth = try await isSuspect()
        #expect(!fifth.now)
        try fifth.shelf.store.close()
    }
}

extension Shelf {
    fileprivate func read(_ file: SparseFile, _ range: ByteRange) throws -> CheckedBytes {
        var bytes = [UInt8](repeating: 0, count: Int(range.length))
        let outcome = bytes.withUnsafeMutableBytes { buffer in
            Result { try commits.read(range, of: file, into: buffer) }
        }
        if case .success(.right) = outcome { #expect(bytes == Shelf.content(range)) }
        return try outcome.get()
    }
}

/// Runs that somebody was told of.
private final class Noted: Sendable {
    private let runs = Mutex([ByteRange]())

    func add(_ more: [ByteRange]) { runs.withLock { $0 += more } }
    var all: [ByteRange] { runs.withLock { $0 } }
}
