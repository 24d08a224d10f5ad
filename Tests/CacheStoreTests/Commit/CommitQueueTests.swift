import CacheCore
import CacheTestKit
import Dispatch
import GRDB
import Glibc
import Synchronization
import Testing

@testable import CacheStore
import TestChance

@Suite struct CommitQueueTests {
    @Test("Flushed extents are present after reopening")
    func whatWasFlushedIsThereAfterReopening() async throws {
        let directory = try TemporaryDirectory()
        try await {
            let testStore = try TestStore(in: directory)
            try testStore.fill(1, 0..<1000, 5000..<9000)
            try await testStore.commits.flush()
            try testStore.store.close()
        }()

        let again = try TestStore(in: directory)
        let asset = try #require(try await again.store.load(TestStore.id(1)))

        #expect(asset.extents.runs == [0..<1000, 5000..<9000])
        #expect(asset.record == TestStore.record(1))
        #expect(try asset.file?.bytes(5000..<9000) == TestStore.content(5000..<9000))
    }

    @Test("Every field of a record round-trips")
    func everyFieldOfARecordComesBack() async throws {
        let testStore = try TestStore()
        let record = TestStore.fullRecord(7)

        testStore.commits.began(record, file: nil)
        try await testStore.commits.flush()

        #expect(try await testStore.store.load(record.id)?.record == record)
    }

    @Test("No byte is claimed before its flush")
    func nothingIsClaimedBeforeItsFlush() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, 0..<1000)

        #expect(try await testStore.store.catalog.asset(TestStore.id(1)) == nil)

        try await testStore.commits.flush()
        #expect(try await testStore.store.catalog.asset(TestStore.id(1))?.cachedBytes == 1000)
    }

    @Test("A bounded flush returns while the commit is held up, and the commit goes on")
    func aBoundedFlushDoesNotWaitForALongCommit() async throws {
        let testStore = try TestStore()
        let catalog = testStore.store.catalog
        let isFree = DispatchSemaphore(value: 0)
        catalog.pool.asyncWriteWithoutTransaction { _ in isFree.wait() }
        try testStore.fill(1, 0..<1000)

        try await testStore.commits.flush(within: .milliseconds(50), clock: ImmediateClock())

        #expect(try await catalog.asset(TestStore.id(1)) == nil)
        isFree.signal()
        try await testStore.commits.flush()
        #expect(try await catalog.asset(TestStore.id(1))?.cachedBytes == 1000)
    }

    @Test("Unclaimed ranges leave the rows and stay in the file")
    func whatIsDisclaimedLeavesTheRowsAndStaysOnTheDisk() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<100_000)
        testStore.commits.unclaim(file, [20_000..<30_000])
        try testStore.grow(file, 25_000..<26_000)
        try await testStore.commits.flush()
        testStore.commits.unclaim(file, [80_000..<90_000])
        try await testStore.commits.flush()

        let extents = try #require(try await testStore.store.load(TestStore.id(1))).extents.runs
        #expect(extents == [0..<20_000, 25_000..<26_000, 30_000..<80_000, 90_000..<100_000])
        #expect(try file.bytes(0..<100_000) == TestStore.content(0..<100_000))
    }

    @Test("The commit lag counts uncommitted bytes and their age")
    func whatACrashWouldLoseIsMeasured() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk)
        #expect(testStore.commits.commitLag == CommitLag())

        try testStore.fill(1, 0..<1000)
        let before = testStore.commits.commitLag
        disk.fail(.syncDirectory, with: EMFILE)
        await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        let failed = testStore.commits.commitLag
        try await testStore.commits.flush()
        let after = testStore.commits.commitLag

        #expect(before.bytes == 1000 && before.age > .zero && before.longest == before.age)
        #expect(failed.bytes == 1000 && failed.age > before.age)
        #expect(after.bytes == 0 && after.age == .zero && after.longest >= failed.age)
    }

    @Test("A file name that cannot be synced does not delay other commits")
    func aNameThatCannotBeMadeDurableHoldsUpNothingElse() async throws {
        let disk = FaultyDisk()
        let lost = Mutex<[ByteRangeSet]>([])
        let testStore = try TestStore(disk: disk, lost: { _, bytes in lost.withLock { $0.append(bytes) } })
        try testStore.fill(1, 0..<1000)
        disk.fail(.syncDirectory, with: EIO)
        await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        try testStore.fill(2, 0..<2000)
        try await testStore.commits.flush()

        #expect(lost.withLock { $0 } == [ByteRangeSet([0..<1000])])
        #expect(try await testStore.store.catalog.asset(TestStore.id(1)) == nil)
        #expect(try await testStore.store.catalog.asset(TestStore.id(2))?.cachedBytes == 2000)
        #expect(
            try testStore.directory.assetFiles("data").count == 1, "The file of the first generation must be deleted.")
    }

    @Test("Sequential growth stays a single extent row")
    func sequentialGrowthStaysOneRow() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<100)
        for start in stride(from: Int64(100), to: 2000, by: 100) {
            try testStore.grow(file, start..<start + 100)
            if start % 300 == 0 { try await testStore.commits.flush() }
        }
        try await testStore.commits.flush()

        #expect(try await testStore.store.catalog.totals() == CatalogTotals(assets: 1, extents: 1, cachedBytes: 2000))
    }

    @Test("Extent rows match the range set through random changes")
    func extentRowsFollowTheSetThroughRandomChanges() async throws {
        var (random, seed) = SeededRandom.announced()
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<1)
        var expected = ByteRangeSet([0..<1])
        for _ in 0..<60 {
            let start = Int64(random.next() % 4000)
            let range = start..<start + 1 + Int64(random.next() % 300)
            if random.next() % 3 == 0 {
                expected.remove(range)
                try await testStore.commits.punch(file, [range])
            } else {
                expected.insert(range)
                try testStore.grow(file, range)
                if random.next() % 2 == 0 { try await testStore.commits.flush() }
            }
        }
        try await testStore.commits.flush()

        let stored = try #require(try await testStore.store.catalog.asset(TestStore.id(1)))
        #expect(stored.extents == expected, "seed \(seed)")
        let totals = try await testStore.store.catalog.totals()
        #expect(totals.cachedBytes == expected.byteCount, "seed \(seed)")
        #expect(totals.extents == expected.runs.count, "seed \(seed)")
        for run in expected.runs {
            #expect(try file.bytes(run) == TestStore.content(run), "seed \(seed)")
        }
    }

    @Test("A new generation replaces row, extents and file")
    func aNewGenerationReplacesRowExtentsAndFile() async throws {
        let testStore = try TestStore()
        let old = try testStore.fill(1, 0..<4000)
        try await testStore.commits.flush()
        let new = try testStore.fill(1, generation: 2, 100..<200)
        try testStore.grow(old, 4000..<5000)
        try await testStore.commits.flush()

        let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
        #expect(loaded.record.generation.number == 2)
        #expect(loaded.extents.runs == [100..<200])
        #expect(loaded.file === new)
        #expect(try await testStore.store.catalog.totals() == CatalogTotals(assets: 1, extents: 1, cachedBytes: 100))
        #expect(try SystemDisk().status(of: try #require(old.path)) == nil)
        #expect(try old.bytes(0..<4000) == TestStore.content(0..<4000), "Open readers must still read the old bytes.")
    }

    @Test("A generation replaced before its commit leaves no file")
    func aGenerationThatWasGivenUpBeforeItsCommitLeavesNoFile() async throws {
        let testStore = try TestStore()
        let first = try testStore.fill(1, 0..<10)
        let second = try testStore.fill(1, generation: 2, 0..<20)
        try await testStore.commits.flush()

        #expect(try SystemDisk().status(of: try #require(first.path)) == nil)
        #expect(try SystemDisk().status(of: try #require(second.path)) != nil)
        #expect(try await testStore.store.load(TestStore.id(1))?.extents.runs == [0..<20])
    }

    @Test("Hits and administrative changes outlast a new generation")
    func whatUsesAndAdministratorsChangedOutlivesANewGeneration() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, 0..<10)
        testStore.commits.touched(TestStore.id(1), at: Timestamp(seconds: 5000), hits: 3)
        try await testStore.commits.flush()
        _ = try await testStore.store.catalog.updateAsset(
            TestStore.id(1), AssetPatch(isPinned: true, tags: ["a", "b"], ttl: .value(.seconds(9))))

        try testStore.fill(1, generation: 2, 0..<20)
        testStore.commits.touched(TestStore.id(1), at: Timestamp(seconds: 4000), hits: 1)
        try await testStore.commits.flush()

        let record = try #require(try await testStore.store.load(TestStore.id(1))).record
        #expect(record.hits == 4)
        #expect(record.lastAccessAt == Timestamp(seconds: 5000))
        #expect(record.isPinned && record.tags == ["a", "b"] && record.ttl == .seconds(9))
    }

    @Test("Hits of a removed asset do not count for its successor")
    func usesOfALifeThatIsOverAreNotTheNextOnes() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, 0..<10)
        try testStore.fill(2, 0..<10)
        for number in [1, 2] as [UInt64] {
            testStore.commits.touched(TestStore.id(number), at: Timestamp(seconds: 5000))
        }
        testStore.commits.discard(TestStore.id(1))
        try testStore.fill(1, 0..<20)
        testStore.commits.touched(TestStore.id(1), at: Timestamp(seconds: 4000), hits: 2)
        try await testStore.commits.flush()

        #expect(try await testStore.store.load(TestStore.id(1))?.record.hits == 2)
        #expect(try await testStore.store.load(TestStore.id(2))?.record.hits == 1)
    }

    @Test("Hits alone make the commit loop commit")
    func usesAloneMakeTheLoopCommit() async throws {
        let testStore = try TestStore()
        let loop = Task { await testStore.commits.run(clock: ImmediateClock()) }
        try testStore.fill(1, 0..<10)
        for count in 1...3 as ClosedRange<Int64> {
            testStore.commits.touched(TestStore.id(1), at: Timestamp(seconds: 5000))
            #expect(try await eventually { try await testStore.store.load(TestStore.id(1))?.record.hits == count })
        }
        loop.cancel()
        await loop.value
    }

    @Test("The commit loop commits after each interval")
    func theLoopCommitsWhenTheIntervalIsOver() async throws {
        let testStore = try TestStore()
        let loop = Task { await testStore.commits.run(clock: ImmediateClock()) }
        try testStore.fill(1, 0..<10)
        #expect(try await eventually { try await testStore.store.catalog.asset(TestStore.id(1)) != nil })
        loop.cancel()
        await loop.value

        #expect(try await testStore.store.catalog.asset(TestStore.id(1))?.cachedBytes == 10)
    }

    @Test("The commit loop commits early when many bytes are pending")
    func theLoopCommitsEarlyWhenMuchIsPending() async throws {
        let testStore = try TestStore(limits: .init(interval: .seconds(1_000_000), bytes: 5000))
        let loop = Task { await testStore.commits.run(clock: ContinuousClock()) }
        try testStore.fill(1, 0..<6000)
        #expect(try await eventually { try await testStore.store.catalog.asset(TestStore.id(1)) != nil })
        loop.cancel()
        await loop.value
    }

    @Test("The commit loop commits once more on cancellation")
    func theLoopMakesALastCommitWhenItIsCancelled() async throws {
        let testStore = try TestStore(limits: .init(interval: .seconds(1_000_000), bytes: .max))
        let loop = Task { await testStore.commits.run(clock: ContinuousClock()) }
        try testStore.fill(1, 0..<10)
        loop.cancel()
        await loop.value

        #expect(try await testStore.store.catalog.asset(TestStore.id(1))?.cachedBytes == 10)
    }
}
