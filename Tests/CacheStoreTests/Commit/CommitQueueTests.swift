import CacheCore
import CacheTestKit
import GRDB
import Glibc
import Synchronization
import Testing

@testable import CacheStore
import TestChance

@Suite struct CommitQueueTests {
    @Test func whatWasFlushedIsThereAfterReopening() async throws {
        let directory = try TemporaryDirectory()
        try await {
            let shelf = try Shelf(in: directory)
            try shelf.fill(1, 0..<1000, 5000..<9000)
            try await shelf.commits.flush()
            try shelf.store.close()
        }()

        let again = try Shelf(in: directory)
        let asset = try #require(try await again.store.load(Shelf.id(1)))

        #expect(asset.extents.runs == [0..<1000, 5000..<9000])
        #expect(asset.record == Shelf.record(1))
        #expect(try asset.file?.bytes(5000..<9000) == Shelf.content(5000..<9000))
    }

    @Test func everyFieldOfARecordComesBack() async throws {
        let shelf = try Shelf()
        let record = Shelf.fullRecord(7)

        shelf.commits.began(record, file: nil)
        try await shelf.commits.flush()

        #expect(try await shelf.store.load(record.id)?.record == record)
    }

    @Test func nothingIsClaimedBeforeItsFlush() async throws {
        let shelf = try Shelf()
        try shelf.fill(1, 0..<1000)

        #expect(try await shelf.store.catalog.asset(Shelf.id(1)) == nil)

        try await shelf.commits.flush()
        #expect(try await shelf.store.catalog.asset(Shelf.id(1))?.cachedBytes == 1000)
    }

    @Test func whatIsDisclaimedLeavesTheRowsAndStaysOnTheDisk() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<100_000)
        shelf.commits.disclaim(file, [20_000..<30_000])
        try shelf.grow(file, 25_000..<26_000)
        try await shelf.commits.flush()
        shelf.commits.disclaim(file, [80_000..<90_000])
        try await shelf.commits.flush()

        let extents = try #require(try await shelf.store.load(Shelf.id(1))).extents.runs
        #expect(extents == [0..<20_000, 25_000..<26_000, 30_000..<80_000, 90_000..<100_000])
        #expect(try file.bytes(0..<100_000) == Shelf.content(0..<100_000))
    }

    @Test func whatACrashWouldLoseIsMeasured() async throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk)
        #expect(shelf.commits.lossWindow == LossWindow())

        try shelf.fill(1, 0..<1000)
        let before = shelf.commits.lossWindow
        disk.fail(.syncDirectory, with: EMFILE)
        await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        let failed = shelf.commits.lossWindow
        try await shelf.commits.flush()
        let after = shelf.commits.lossWindow

        #expect(before.bytes == 1000 && before.age > .zero && before.longest == before.age)
        #expect(failed.bytes == 1000 && failed.age > before.age)
        #expect(after.bytes == 0 && after.age == .zero && after.longest >= failed.age)
    }

    @Test func aNameThatCannotBeMadeDurableHoldsUpNothingElse() async throws {
        let disk = FaultyDisk()
        let lost = Mutex<[ByteRangeSet]>([])
        let shelf = try Shelf(disk: disk, lost: { _, bytes in lost.withLock { $0.append(bytes) } })
        try shelf.fill(1, 0..<1000)
        disk.fail(.syncDirectory, with: EIO)
        await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        try shelf.fill(2, 0..<2000)
        try await shelf.commits.flush()

        #expect(lost.withLock { $0 } == [ByteRangeSet([0..<1000])])
        #expect(try await shelf.store.catalog.asset(Shelf.id(1)) == nil)
        #expect(try await shelf.store.catalog.asset(Shelf.id(2))?.cachedBytes == 2000)
        #expect(try shelf.directory.assetFiles("data").count == 1, "the file of the first is gone")
    }

    @Test func sequentialGrowthStaysOneRow() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<100)
        for start in stride(from: Int64(100), to: 2000, by: 100) {
            try shelf.grow(file, start..<start + 100)
            if start % 300 == 0 { try await shelf.commits.flush() }
        }
        try await shelf.commits.flush()

        #expect(try await shelf.store.catalog.totals() == CatalogTotals(assets: 1, extents: 1, cachedBytes: 2000))
    }

    @Test func extentRowsFollowTheSetThroughRandomChanges() async throws {
        var (random, seed) = SeededRandom.announced()
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<1)
        var expected = ByteRangeSet([0..<1])
        for _ in 0..<60 {
            let start = Int64(random.next() % 4000)
            let range = start..<start + 1 + Int64(random.next() % 300)
            if random.next() % 3 == 0 {
                expected.remove(range)
                try await shelf.commits.punch(file, [range])
            } else {
                expected.insert(range)
                try shelf.grow(file, range)
                if random.next() % 2 == 0 { try await shelf.commits.flush() }
            }
        }
        try await shelf.commits.flush()

        let stored = try #require(try await shelf.store.catalog.asset(Shelf.id(1)))
        #expect(stored.extents == expected, "seed \(seed)")
        let totals = try await shelf.store.catalog.totals()
        #expect(totals.cachedBytes == expected.byteCount, "seed \(seed)")
        #expect(totals.extents == expected.runs.count, "seed \(seed)")
        for run in expected.runs {
            #expect(try file.bytes(run) == Shelf.content(run), "seed \(seed)")
        }
    }

    @Test func aNewGenerationReplacesRowExtentsAndFile() async throws {
        let shelf = try Shelf()
        let old = try shelf.fill(1, 0..<4000)
        try await shelf.commits.flush()
        let new = try shelf.fill(1, generation: 2, 100..<200)
        try shelf.grow(old, 4000..<5000)
        try await shelf.commits.flush()

        let loaded = try #require(try await shelf.store.load(Shelf.id(1)))
        #expect(loaded.record.generation.number == 2)
        #expect(loaded.extents.runs == [100..<200])
        #expect(loaded.file === new)
        #expect(try await shelf.store.catalog.totals() == CatalogTotals(assets: 1, extents: 1, cachedBytes: 100))
        #expect(try SystemDisk().status(of: try #require(old.path)) == nil)
        #expect(try old.bytes(0..<4000) == Shelf.content(0..<4000), "open readers go on")
    }

    @Test func aGenerationThatWasGivenUpBeforeItsCommitLeavesNoFile() async throws {
        let shelf = try Shelf()
        let first = try shelf.fill(1, 0..<10)
        let second = try shelf.fill(1, generation: 2, 0..<20)
        try await shelf.commits.flush()

        #expect(try SystemDisk().status(of: try #require(first.path)) == nil)
        #expect(try SystemDisk().status(of: try #require(second.path)) != nil)
        #expect(try await shelf.store.load(Shelf.id(1))?.extents.runs == [0..<20])
    }

    @Test func whatUsesAndAdministratorsChangedOutlivesANewGeneration() async throws {
        let shelf = try Shelf()
        try shelf.fill(1, 0..<10)
        shelf.commits.touched(Shelf.id(1), at: Timestamp(seconds: 5000), hits: 3)
        try await shelf.commits.flush()
        _ = try await shelf.store.catalog.updateAsset(
            Shelf.id(1), AssetChange(isPinned: true, tags: ["a", "b"], ttl: .some(.seconds(9))))

        try shelf.fill(1, generation: 2, 0..<20)
        shelf.commits.touched(Shelf.id(1), at: Timestamp(seconds: 4000), hits: 1)
        try await shelf.commits.flush()

        let record = try #require(try await shelf.store.load(Shelf.id(1))).record
        #expect(record.hits == 4)
        #expect(record.lastAccessAt == Timestamp(seconds: 5000))
        #expect(record.isPinned && record.tags == ["a", "b"] && record.ttl == .seconds(9))
    }

    @Test func usesOfALifeThatIsOverAreNotTheNextOnes() async throws {
        let shelf = try Shelf()
        try shelf.fill(1, 0..<10)
        try shelf.fill(2, 0..<10)
        for number in [1, 2] as [UInt64] { shelf.commits.touched(Shelf.id(number), at: Timestamp(seconds: 5000)) }
        shelf.commits.discard(Shelf.id(1))
        try shelf.fill(1, 0..<20)
        shelf.commits.touched(Shelf.id(1), at: Timestamp(seconds: 4000), hits: 2)
        try await shelf.commits.flush()

        #expect(try await shelf.store.load(Shelf.id(1))?.record.hits == 2)
        #expect(try await shelf.store.load(Shelf.id(2))?.record.hits == 1)
    }

    @Test func usesAloneMakeTheLoopCommit() async throws {
        let shelf = try Shelf()
        let loop = Task { await shelf.commits.run(clock: ImmediateClock()) }
        try shelf.fill(1, 0..<10)
        for count in 1...3 as ClosedRange<Int64> {
            shelf.commits.touched(Shelf.id(1), at: Timestamp(seconds: 5000))
            #expect(try await eventually { try await shelf.store.load(Shelf.id(1))?.record.hits == count })
        }
        loop.cancel()
        await loop.value
    }

    @Test func theLoopCommitsWhenTheIntervalIsOver() async throws {
        let shelf = try Shelf()
        let loop = Task { await shelf.commits.run(clock: ImmediateClock()) }
        try shelf.fill(1, 0..<10)
        while try await shelf.store.catalog.asset(Shelf.id(1)) == nil { await Task.yield() }
        loop.cancel()
        await loop.value

        #expect(try await shelf.store.catalog.asset(Shelf.id(1))?.cachedBytes == 10)
    }

    @Test func theLoopCommitsEarlyWhenMuchIsPending() async throws {
        let shelf = try Shelf(limits: .init(interval: .seconds(1_000_000), bytes: 5000))
        let loop = Task { await shelf.commits.run(clock: ContinuousClock()) }
        try shelf.fill(1, 0..<6000)
        while try await shelf.store.catalog.asset(Shelf.id(1)) == nil { await Task.yield() }
        loop.cancel()
        await loop.value
    }

    @Test func theLoopMakesALastCommitWhenItIsCancelled() async throws {
        let shelf = try Shelf(limits: .init(interval: .seconds(1_000_000), bytes: .max))
        let loop = Task { await shelf.commits.run(clock: ContinuousClock()) }
        try shelf.fill(1, 0..<10)
        loop.cancel()
        await loop.value

        #expect(try await shelf.store.catalog.asset(Shelf.id(1))?.cachedBytes == 10)
    }
}
