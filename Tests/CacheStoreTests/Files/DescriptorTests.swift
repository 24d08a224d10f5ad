import CacheCore
import CacheTestKit
import Dispatch
import GRDB
import Glibc
import Synchronization
import Testing

@testable import CacheStore
import TestChance

/// Files that share a small number of descriptors.
@Suite struct DescriptorTests {
    private static let size: Int64 = 20_000

    /// Content that differs between files.
    private static func content(_ number: Int, _ range: ByteRange) -> [UInt8] {
        TestStore.content(range.lowerBound + Int64(number)..<range.upperBound + Int64(number))
    }

    /// Opens other files until every idle descriptor from before is closed.
    private static func crowd(_ testStore: TestStore) async throws {
        try await testStore.commits.flush()
        // CLOCK spares a recently used descriptor once, so one round is not enough.
        let count = 3 * UInt64(testStore.store.descriptors.limit)
        for number in 1...count { _ = try testStore.fill(1_000_000 + number) }
    }

    private static func opens(_ disk: FaultyDisk, _ file: SparseFile) -> Int {
        disk.events.count { $0.call == .open && $0.path == file.path }
    }

    @Test("Eight threads read a hundred files through eight descriptors")
    func aHundredFilesShareEightDescriptorsAmongEightThreads() throws {
        let testStore = try TestStore(openFileLimit: 8)
        let files = try (0..<100).map { number in
            let file = try testStore.store.createFile(asset: TestStore.id(UInt64(number)), generation: 1)
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
                most.max(testStore.store.descriptors.openCount, ordering: .relaxed)
            }
        }

        #expect(wrong.load(ordering: .relaxed) == 0, "seed \(seed)")
        // Each thread can hold one descriptor in use and one being opened.
        #expect(most.load(ordering: .relaxed) <= 8 + 16)
        #expect(testStore.store.descriptors.openCount <= 8)
    }

    @Test("Releasing a file closes its descriptor")
    func aFileThatIsDroppedGivesItsDescriptorBack() throws {
        let testStore = try TestStore()
        var file: SparseFile? = try testStore.store.createFile(asset: TestStore.id(1), generation: 1)
        #expect(file != nil && testStore.store.descriptors.openCount == 1)

        file = nil

        #expect(testStore.store.descriptors.openCount == 0)
    }

    @Test("Sendfile pins leave descriptors for other files")
    func whatIsLentForLongLeavesDescriptorsToTheOthers() async throws {
        let testStore = try TestStore(openFileLimit: 4)
        // Pins require a file system that reports page references.
        guard testStore.store.descriptors.tellsReferences else { return }
        let files = try (1...9).map { try testStore.fill($0, 0..<100) }
        try await testStore.commits.flush()
        var loans: [SendfilePin] = []
        for file in files {
            _ = try file.bytes(0..<100)
            if let pin = file.pinForSendfile(0..<100) { loans.append(pin) }
        }
        #expect(loans.count == 2 && testStore.store.descriptors.openCount == 4)

        // Another pin of the same file needs no further descriptor.
        if let again = files[0].pinForSendfile(0..<100) { loans.append(again) }
        #expect(loans.count == 3)

        loans = []
        #expect(files[8].pinForSendfile(0..<100) != nil)
    }

    @Test("A frequently read file stays open while other files are read once")
    func whatIsReadAgainAndAgainStaysOpenWhileOthersPass() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk, openFileLimit: 8)
        let files = try (1...40).map { try testStore.fill($0, 0..<100) }
        try await testStore.commits.flush()
        let before = Self.opens(disk, files[0])
        for file in files.dropFirst() {
            _ = try files[0].bytes(0..<100)
            _ = try file.bytes(0..<100)
        }
        #expect(Self.opens(disk, files[0]) - before <= 1 && testStore.store.descriptors.openCount <= 8)
    }

    @Test("A file with unsynced bytes stays open")
    func whatIsNotSyncedStaysOpen() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk, openFileLimit: 4)
        let file = try testStore.fill(1, 0..<100)
        let others = try (2...9).map { try testStore.fill($0) }
        _ = try file.bytes(0..<10)
        #expect(Self.opens(disk, file) == 1)

        try await Self.crowd(testStore)
        _ = try file.bytes(0..<10)

        #expect(Self.opens(disk, file) == 2)
        #expect(others.count == 8 && testStore.store.descriptors.openCount == 4)
    }

    @Test("Many unsynced files trigger an early commit")
    func manyUnsyncedFilesAreCommittedBeforeTheirTime() async throws {
        let testStore = try TestStore(
            limits: CommitQueue.Limits(interval: .seconds(3600), bytes: .max), openFileLimit: 8)
        let committed = try await withThrowingTaskGroup { group in
            group.addTask { await testStore.commits.run(clock: ContinuousClock()) }
            for number in 1...4 as ClosedRange<UInt64> { try testStore.fill(number, 0..<10) }
            defer { group.cancelAll() }
            return try await eventually { try await testStore.store.catalog.totals().cachedBytes == 40 }
        }
        #expect(committed)
    }

    /// The cause of the unlink.
    enum Removal: CaseIterable { case purge, generation, start }

    @Test("An unlinked file stays readable for its holder", arguments: Removal.allCases)
    func aFileWithoutANameIsReadableForWhoHasIt(_ removal: Removal) async throws {
        let disk = FaultyDisk()
        let directory = try TemporaryDirectory()
        let earlier = try TestStore(in: directory)
        try earlier.fill(1, 0..<Self.size)
        try await earlier.commits.flush()
        try earlier.store.close()
        let testStore = try TestStore(in: directory, disk: disk, openFileLimit: 4)
        let file = try #require(try await testStore.store.load(TestStore.id(1))?.file)
        try await Self.crowd(testStore)
        #expect(testStore.store.descriptors.openCount <= 4)

        switch removal {
        case .purge: try await testStore.commits.remove([TestStore.id(1)])
        case .generation:
            try testStore.fill(1, generation: 2)
            try await testStore.commits.flush()
        case .start:
            try await testStore.store.catalog.pool.write { try $0.execute(sql: "DELETE FROM assets WHERE hits = 0") }
            _ = try await testStore.store.reconcile()
        }
        try await Self.crowd(testStore)

        #expect(try SystemDisk().status(of: try #require(file.path)) == nil)
        #expect(try file.bytes(0..<Self.size) == TestStore.content(0..<Self.size))
        #expect(Self.opens(disk, file) == 2)
    }

    /// Another caller opens the file during its unlink.
    @Test("A file opened while it is unlinked is readable", arguments: [FaultyDisk.Call.unlink, .status])
    func aFileOpenedWhileItsNameGoesIsReadable(during call: FaultyDisk.Call) async throws {
        let meanwhile = Mutex<(@Sendable (FaultyDisk.Event) -> Void)?>(nil)
        let disk = FaultyDisk { event in meanwhile.withLock { $0 }?(event) }
        let testStore = try TestStore(disk: disk, openFileLimit: 4)
        let name = try #require(try testStore.fill(1, 0..<Self.size).name)
        try await testStore.commits.flush()
        let path = testStore.store.layout.path(of: name)
        let found = Mutex<SparseFile?>(nil)
        meanwhile.withLock {
            $0 = { event in
                guard event.path == path, event.call == call else { return }
                meanwhile.withLock { $0 = nil }
                switch call {
                case .unlink: found.withLock { $0 = try? testStore.store.openFile(name) }
                default: try? testStore.store.unlink(name)
                }
            }
        }
        switch call {
        case .unlink: try testStore.store.unlink(name)
        default:
            let opened = try testStore.store.openFile(name)
            found.withLock { $0 = opened }
        }
        try await Self.crowd(testStore)

        let file = try #require(found.withLock { $0 })
        #expect(try SystemDisk().status(of: path) == nil)
        #expect(try file.bytes(0..<Self.size) == TestStore.content(0..<Self.size))
    }

    @Test("Descriptor exhaustion closes idle descriptors")
    func whereNoDescriptorIsLeftIdleOnesAreClosed() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk)
        let files = try (1...5).map { try testStore.fill($0, 0..<100) }
        try await testStore.commits.flush()

        disk.fail(.open, with: EMFILE)
        let another = try testStore.store.createTransient()

        #expect(testStore.store.descriptors.openCount == 1)
        #expect(try files.allSatisfy { try $0.bytes(0..<100) == TestStore.content(0..<100) })
        #expect(try another.size() == 0)
    }

    @Test("A read without a descriptor fails as overloaded and the next read succeeds", arguments: [EMFILE, ENFILE])
    func aReadWithoutADescriptorFailsAndTheNextOneWorks(number: Int32) async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk, openFileLimit: 4)
        let file = try testStore.fill(1, 0..<100)
        try await Self.crowd(testStore)

        disk.fail(.open, with: number, isLasting: true)
        let read = #expect(throws: CacheError.self) { try file.bytes(0..<100) }
        let write = #expect(throws: CacheError.self) { try file.write(at: 100, [1]) }
        disk.heal()

        #expect(read?.code == .overloaded && write?.code == .overloaded)
        #expect(try file.bytes(0..<100) == TestStore.content(0..<100))
        try testStore.grow(file, 100..<200)
        try await testStore.commits.flush()
        #expect(try await testStore.store.load(TestStore.id(1))?.extents.runs == [0..<200])
    }

    @Test("A file is not unlinked while its reader cannot get a descriptor")
    func aNameStaysWhileItsReaderCannotHaveADescriptor() async throws {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk, openFileLimit: 4)
        let file = try testStore.fill(1, 0..<100)
        let path = try #require(file.path)
        try await Self.crowd(testStore)

        disk.fail(.open, with: EMFILE, isLasting: true)
        let error = await #expect(throws: CacheError.self) { try await testStore.commits.remove([TestStore.id(1)]) }
        disk.heal()
        #expect(error?.code == .overloaded)
        #expect(try SystemDisk().status(of: path) != nil)
        #expect(try await testStore.store.load(TestStore.id(1)) == nil)

        try await testStore.commits.flush()
        #expect(try SystemDisk().status(of: path) == nil)
        #expect(try file.bytes(0..<100) == TestStore.content(0..<100))
    }
}
