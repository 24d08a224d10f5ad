import CacheCore
import CacheTestKit
import Dispatch
import GRDB
import Glibc
import Synchronization
import Testing

@testable import CacheStore
import TestChance

/// Files with few descriptors between them.
@Suite struct DescriptorTests {
    private static let size: Int64 = 20_000

    /// Bytes that are another's in every file.
    private static func content(_ number: Int, _ range: ByteRange) -> [UInt8] {
        Shelf.content(range.lowerBound + Int64(number)..<range.upperBound + Int64(number))
    }

    /// Has other files opened until nothing that may be closed is open still.
    private static func crowd(_ shelf: Shelf) async throws {
        try await shelf.commits.flush()
        // The hand spares what was used lately, once.
        let count = 3 * UInt64(shelf.store.shelf.limit)
        for number in 1...count { _ = try shelf.fill(1_000_000 + number) }
    }

    private static func opens(_ disk: FaultyDisk, _ file: SparseFile) -> Int {
        disk.events.count { $0.call == .open && $0.path == file.path }
    }

    @Test func aHundredFilesShareEightDescriptorsAmongEightThreads() throws {
        let shelf = try Shelf(openFileLimit: 8)
        let files = try (0..<100).map { number in
            let file = try shelf.store.createFile(asset: Shelf.id(UInt64(number)), generation: 1)
            try file.write(at: 0, Self.content(number, 0..<Self.size))
            try file.sync()
            return file
        }
        let seed = SeededRandom.announced().seed
        let wrong = Atomic(0)
        let most = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var random = SeededRandom(seed: seed &+ UInt64(thread))
            for _ in 0..<1500 {
                let number = Int(random.next() % 100)
                let start = Int64(random.next() % UInt64(Self.size - 500))
                let range = start..<start + 1 + Int64(random.next() % 500)
                do {
                    if random.next() % 3 == 0 {
                        try files[number].write(at: start, Self.content(number, range))
                        try files[number].sync()
                    } else if try files[number].bytes(range) != Self.content(number, range) {
                        wrong.add(1, ordering: .relaxed)
                    }
                } catch {
                    wrong.add(1, ordering: .relaxed)
                }
                most.max(shelf.store.shelf.openCount, ordering: .relaxed)
            }
        }

        #expect(wrong.load(ordering: .relaxed) == 0, "seed \(seed)")
        // Each thread may have one in use, and one that it is just opening.
        #expect(most.load(ordering: .relaxed) <= 8 + 16)
        #expect(shelf.store.shelf.openCount <= 8)
    }

    @Test func aFileThatIsDroppedGivesItsDescriptorBack() throws {
        let shelf = try Shelf()
        var file: SparseFile? = try shelf.store.createFile(asset: Shelf.id(1), generation: 1)
        #expect(file != nil && shelf.store.shelf.openCount == 1)

        file = nil

        #expect(shelf.store.shelf.openCount == 0)
    }

    @Test func whatIsLentForLongLeavesDescriptorsToTheOthers() async throws {
        let shelf = try Shelf(openFileLimit: 4)
        // Where the file system does not tell who refers to its pages nothing is lent.
        guard shelf.store.shelf.tellsReferences else { return }
        let files = try (1...9).map { try shelf.fill($0, 0..<100) }
        try await shelf.commits.flush()
        var loans: [FileLoan] = []
        for file in files {
            _ = try file.bytes(0..<100)
            if let loan = file.lendNow(0..<100) { loans.append(loan) }
        }
        #expect(loans.count == 2 && shelf.store.shelf.openCount == 4)

        // One more of the same file takes no descriptor.
        if let again = files[0].lendNow(0..<100) { loans.append(again) }
        #expect(loans.count == 3)

        loans = []
        #expect(files[8].lendNow(0..<100) != nil)
    }

    @Test func whatIsReadAgainAndAgainStaysOpenWhileOthersPass() async throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk, openFileLimit: 8)
        let files = try (1...40).map { try shelf.fill($0, 0..<100) }
        try await shelf.commits.flush()
        let before = Self.opens(disk, files[0])
        for file in files.dropFirst() {
            _ = try files[0].bytes(0..<100)
            _ = try file.bytes(0..<100)
        }
        #expect(Self.opens(disk, files[0]) - before <= 1 && shelf.store.shelf.openCount <= 8)
    }

    @Test func whatIsNotSyncedStaysOpen() async throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk, openFileLimit: 4)
        let file = try shelf.fill(1, 0..<100)
        let others = try (2...9).map { try shelf.fill($0) }
        _ = try file.bytes(0..<10)
        #expect(Self.opens(disk, file) == 1)

        try await Self.crowd(shelf)
        _ = try file.bytes(0..<10)

        #expect(Self.opens(disk, file) == 2)
        #expect(others.count == 8 && shelf.store.shelf.openCount == 4)
    }

    @Test func manyUnsyncedFilesAreCommittedBeforeTheirTime() async throws {
        let shelf = try Shelf(
            limits: CommitQueue.Limits(interval: .seconds(3600), bytes: .max), openFileLimit: 8)
        let committed = try await withThrowingTaskGroup { group in
            group.addTask { await shelf.commits.run(clock: ContinuousClock()) }
            for number in 1...4 as ClosedRange<UInt64> { try shelf.fill(number, 0..<10) }
            defer { group.cancelAll() }
            return try await eventually { try await shelf.store.catalog.totals().cachedBytes == 40 }
        }
        #expect(committed)
    }

    enum Removal: CaseIterable { case purge, generation, start }

    @Test(arguments: Removal.allCases)
    func aFileWithoutANameIsReadableForWhoHasIt(_ removal: Removal) async throws {
        let disk = FaultyDisk()
        let directory = try TemporaryDirectory()
        let earlier = try Shelf(in: directory)
        try earlier.fill(1, 0..<Self.size)
        try await earlier.commits.flush()
        try earlier.store.close()
        let shelf = try Shelf(in: directory, disk: disk, openFileLimit: 4)
        let file = try #require(try await shelf.store.load(Shelf.id(1))?.file)
        try await Self.crowd(shelf)
        #expect(shelf.store.shelf.openCount <= 4)

        switch removal {
        case .purge: try await shelf.commits.remove([Shelf.id(1)])
        case .generation:
            try shelf.fill(1, generation: 2)
            try await shelf.commits.flush()
        case .start:
            try await shelf.store.catalog.pool.write { try $0.execute(sql: "DELETE FROM assets WHERE hits = 0") }
            _ = try await shelf.store.reconcile()
        }
        try await Self.crowd(shelf)

        #expect(try SystemDisk().status(of: try #require(file.path)) == nil)
        #expect(try file.bytes(0..<Self.size) == Shelf.content(0..<Self.size))
        #expect(Self.opens(disk, file) == 2)
    }

    /// The file is opened by somebody just when its name goes.
    @Test(arguments: [FaultyDisk.Call.unlink, .status])
    func aFileOpenedWhileItsNameGoesIsReadable(during call: FaultyDisk.Call) async throws {
        let meanwhile = Mutex<(@Sendable (FaultyDisk.Event) -> Void)?>(nil)
        let disk = FaultyDisk { event in meanwhile.withLock { $0 }?(event) }
        let shelf = try Shelf(disk: disk, openFileLimit: 4)
        let name = try #require(try shelf.fill(1, 0..<Self.size).name)
        try await shelf.commits.flush()
        let path = shelf.store.layout.path(of: name)
        let found = Mutex<SparseFile?>(nil)
        meanwhile.withLock {
            $0 = { event in
                guard event.path == path, event.call == call else { return }
                meanwhile.withLock { $0 = nil }
                switch call {
                case .unlink: found.withLock { $0 = try? shelf.store.openFile(name) }
                default: try? shelf.store.unlink(name)
                }
            }
        }
        switch call {
        case .unlink: try shelf.store.unlink(name)
        default:
            let opened = try shelf.store.openFile(name)
            found.withLock { $0 = opened }
        }
        try await Self.crowd(shelf)

        let file = try #require(found.withLock { $0 })
        #expect(try SystemDisk().status(of: path) == nil)
        #expect(try file.bytes(0..<Self.size) == Shelf.content(0..<Self.size))
    }

    @Test func whereNoDescriptorIsLeftIdleOnesAreClosed() async throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk)
        let files = try (1...5).map { try shelf.fill($0, 0..<100) }
        try await shelf.commits.flush()

        disk.fail(.open, with: EMFILE)
        let another = try shelf.store.createTransient()

        #expect(shelf.store.shelf.openCount == 1)
        #expect(try files.allSatisfy { try $0.bytes(0..<100) == Shelf.content(0..<100) })
        #expect(try another.size() == 0)
    }

    @Test(arguments: [EMFILE, ENFILE])
    func aReadWithoutADescriptorFailsAndTheNextOneWorks(number: Int32) async throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk, openFileLimit: 4)
        let file = try shelf.fill(1, 0..<100)
        try await Self.crowd(shelf)

        disk.fail(.open, with: number, isLasting: true)
        let read = #expect(throws: CacheError.self) { try file.bytes(0..<100) }
        let write = #expect(throws: CacheError.self) { try file.write(at: 100, [1]) }
        disk.heal()

        #expect(read?.code == .overloaded && write?.code == .overloaded)
        #expect(try file.bytes(0..<100) == Shelf.content(0..<100))
        try shelf.grow(file, 100..<200)
        try await shelf.commits.flush()
        #expect(try await shelf.store.load(Shelf.id(1))?.extents.runs == [0..<200])
    }

    @Test func aNameStaysWhileItsReaderCannotHaveADescriptor() async throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk, openFileLimit: 4)
        let file = try shelf.fill(1, 0..<100)
        let path = try #require(file.path)
        try await Self.crowd(shelf)

        disk.fail(.open, with: EMFILE, isLasting: true)
        let error = await #expect(throws: CacheError.self) { try await shelf.commits.remove([Shelf.id(1)]) }
        disk.heal()
        #expect(error?.code == .overloaded)
        #expect(try SystemDisk().status(of: path) != nil)
        #expect(try await shelf.store.load(Shelf.id(1)) == nil)

        try await shelf.commits.flush()
        #expect(try SystemDisk().status(of: path) == nil)
        #expect(try file.bytes(0..<100) == Shelf.content(0..<100))
    }
}
