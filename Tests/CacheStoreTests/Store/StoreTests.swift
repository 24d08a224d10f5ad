import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Glibc
import Testing

@testable import CacheStore

@Suite struct StoreTests {
    @Test("A second user of the directory is rejected with process id and path")
    func aSecondUserOfTheDirectoryIsRefusedByName() throws {
        let testStore = try TestStore()

        let error = #expect(throws: CacheError.self) { try TestStore(in: testStore.directory) }

        #expect(error?.code == .conflict)
        #expect(error?.message.contains("process \(getpid())") == true)
        #expect(error?.message.contains(testStore.directory.path("data")) == true)
    }

    @Test("The directory lock is released when the store is closed")
    func theDirectoryIsFreeAgainWhenTheStoreIsGone() throws {
        let directory = try TemporaryDirectory()
        for _ in 0..<3 { try TestStore(in: directory).store.close() }
    }

    @Test("A closed store throws on every operation")
    func aClosedStoreFailsInsteadOfPretending() async throws {
        let testStore = try TestStore()
        try testStore.fill(1, 0..<10)
        try testStore.store.close()

        await #expect(throws: CacheError.self) { try await testStore.commits.flush() }
        await #expect(throws: CacheError.self) { try await testStore.store.load(TestStore.id(1)) }
        await #expect(throws: CacheError.self) { try await testStore.store.catalog.savePolicy(PolicySettings()) }
    }

    @Test(
        "A foreign directory is rejected by name and left unchanged",
        arguments: [["notes.txt"], ["notes.txt", "secret.key.new"]])
    func aDirectoryOfOthersIsRefusedByNameAndLeftAsItWas(names: [String]) throws {
        let directory = try TemporaryDirectory()
        _ = try SystemDisk().createDirectory(directory.path("data"))
        for name in names { try Data("notes".utf8).write(to: URL(fileURLWithPath: directory.path("data/\(name)"))) }

        let error = #expect(throws: CacheError.self) { try TestStore(in: directory) }

        #expect(error?.code == .conflict)
        #expect(
            error?.message.contains("\(directory.path("data")) is not a store of Larder: it contains notes.txt") == true
        )
        #expect(try SystemDisk().list(directory.path("data")).sorted() == names)
    }

    @Test("A directory with only file system entries is accepted")
    func aDirectoryWithNothingButWhatFileSystemsMakeIsTaken() throws {
        let directory = try TemporaryDirectory()
        for name in ["data", "data/lost+found", "data/.keep"] {
            _ = try SystemDisk().createDirectory(directory.path(name))
        }
        try TestStore(in: directory).store.close()
        // Foreign files beside an existing store are accepted, too.
        try Data().write(to: URL(fileURLWithPath: directory.path("data/notes.txt")))
        try TestStore(in: directory).store.close()
    }

    /// A power loss during the first start can leave any name that was not synced yet.
    @Test(
        "A directory with the remains of an interrupted start is accepted",
        arguments: ["larder.lock", "secret.key.new"])
    func aDirectoryWithOneTraceOfAnEarlierStartIsTaken(name: String) throws {
        let directory = try TemporaryDirectory()
        _ = try SystemDisk().createDirectory(directory.path("data"))
        try Data("half a".utf8).write(to: URL(fileURLWithPath: directory.path("data/\(name)")))

        try TestStore(in: directory).store.close()

        #expect(try !SystemDisk().list(directory.path("data")).contains("secret.key.new"))
    }

    @Test("The error for a read-only file system states the cause", arguments: [true, false])
    func aFileSystemThatIsReadOnlyIsNamed(
        isNew: Bool
    ) throws {
        let directory = try TemporaryDirectory()
        if !isNew { try TestStore(in: directory).store.close() }
        let disk = FaultyDisk()
        disk.fail(isNew ? .createDirectory : .open, with: EROFS)

        let error = #expect(throws: CacheError.self) { try TestStore(in: directory, disk: disk) }

        #expect(error?.message.hasSuffix("the file system is read-only.") == true)
    }

    @Test("Only the owner can read the directory and the key")
    func onlyTheOwnerMayReadTheDirectoryAndTheKey() throws {
        let testStore = try TestStore()
        for (name, mode) in [("data", 0o700), ("data/secret.key", 0o600), ("data/larder.lock", 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: testStore.directory.path(name))
            #expect(attributes[.posixPermissions] as? Int == mode, "\(name)")
        }
    }

    @Test("A file name round-trips, and malformed file names are rejected")
    func aFileNameSaysWhatItIsAndNothingElseIsOne() throws {
        let name = FileName(asset: TestStore.id(3), generation: 7, serial: 1 << 40 | 12)
        #expect(FileName(name.description) == name)
        let id = TestStore.id(3).description
        for text in ["", "\(id)-1.bytes", "\(id)-1-g.bytes", "\(id)-01-1.bytes", "\(id)-1-0A.bytes", "\(id)-1-1.byte"] {
            #expect(FileName(text) == nil, "\(text)")
        }
    }

    @Test("Reconciliation removes earlier files without rows and keeps files of this run")
    func filesOfEarlierRunsWithoutRowsAreRemovedAndThoseOfThisRunStay() async throws {
        let directory = try TemporaryDirectory()
        let earlier = try TestStore(in: directory)
        let orphan = try #require(try earlier.fill(1, 0..<5000).path)
        try earlier.store.close()
        let testStore = try TestStore(in: directory)
        let fresh = try testStore.fill(2, 0..<5000)

        let result = try await testStore.store.reconcile()

        #expect(result.removedFiles == 1)
        #expect(try SystemDisk().status(of: orphan) == nil)
        #expect(try SystemDisk().status(of: try #require(fresh.path)) != nil)
        #expect(result.usedDiskBytes == 0)
        #expect(try await testStore.store.usedDiskBytes() == fresh.diskBytes())
    }

    @Test("A row without its file has no extents", arguments: [true, false]) func aRowWhoseFileIsGoneClaimsNothing(
        byLoading: Bool
    ) async throws {
        let (testStore, path) = try await reopened { try SystemDisk().unlink($0) }

        if byLoading {
            let loaded = try #require(try await testStore.store.load(TestStore.id(1)))
            #expect(loaded.extents.isEmpty && loaded.file == nil)
        } else {
            #expect(try await testStore.store.reconcile().emptiedRows == 1)
        }

        let stored = try #require(try await testStore.store.catalog.asset(TestStore.id(1)))
        #expect(stored.extents.isEmpty && stored.file == nil)
        #expect(try await testStore.store.catalog.totals().cachedBytes == 0)
        #expect(try SystemDisk().status(of: path) == nil)
    }

    @Test("Extents past the end of the file are cut", arguments: [true, false]) func extentsPastTheEndOfAFileAreCut(
        byLoading: Bool
    ) async throws {
        let (testStore, _) = try await reopened { #expect(truncate($0, 5500) == 0) }

        if byLoading {
            #expect(try await testStore.store.load(TestStore.id(1))?.extents.runs == [0..<1000])
        } else {
            #expect(try await testStore.store.reconcile().cutRows == 1)
        }

        let stored = try #require(try await testStore.store.catalog.asset(TestStore.id(1)))
        // The rest of a truncated extent cannot be trusted, so the extent is removed as a whole.
        #expect(stored.extents.runs == [0..<1000])
        #expect(try await testStore.store.catalog.totals().cachedBytes == 1000)
    }

    @Test("Loading an asset twice returns the same file object")
    func oneFileIsOneObjectHoweverOftenItIsLoaded() async throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<10)
        try await testStore.commits.flush()

        #expect(try await testStore.store.load(TestStore.id(1))?.file === file)
    }

    @Test("A transient file leaves no directory entry")
    func aTransientFileLeavesNothingBehind() async throws {
        let testStore = try TestStore()
        let before = try FileManager.default.contentsOfDirectory(atPath: testStore.directory.path("data"))
        let file = try testStore.store.createTransient()
        try file.write(at: 0, [1, 2, 3])
        testStore.commits.grew(file, file.kept(0..<3))
        try await testStore.commits.flush()

        #expect(try file.bytes(0..<10) == [1, 2, 3])
        #expect(try FileManager.default.contentsOfDirectory(atPath: testStore.directory.path("data")) == before)
    }

    @Test("Short writes are continued until all bytes are written")
    func shortWritesAreGoneOnWith() throws {
        let disk = FaultyDisk()
        disk.limitWrites(to: 7)
        let testStore = try TestStore(disk: disk)
        let file = try testStore.fill(1, 0..<100)

        #expect(try file.bytes(0..<100) == TestStore.content(0..<100))
    }

    @Test("Bytes in the page cache are read without blocking")
    func whatIsInThePageCacheIsReadAtOnce() throws {
        let testStore = try TestStore()
        let file = try testStore.fill(1, 0..<100)
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = bytes.withUnsafeMutableBytes { file.readFromPageCache(into: $0, at: 0) }

        // nil: the file system does not support non-blocking reads.
        if let count { #expect(count == 100 && bytes == TestStore.content(0..<100)) }
    }

    @Test(
        "A failed write throws the code of its errno",
        arguments: [
            (ENOSPC, CacheError.Code.storageFull), (EDQUOT, .storageFull), (EFBIG, .storageFull),
            (EIO, .storageCorrupt),
            (EMFILE, .overloaded), (EACCES, .internal), (EINVAL, .internal),
        ]) func aFailedWriteSaysWhy(number: Int32, code: CacheError.Code) throws
    {
        let disk = FaultyDisk()
        let testStore = try TestStore(disk: disk)
        let file = try testStore.fill(1)
        // Exhaust the spill memory, so that it cannot absorb the failed write.
        #expect(testStore.store.descriptors.spill.take(64 << 20))
        disk.fail(.write, with: number)

        let error = #expect(throws: CacheError.self) { try file.write(at: 0, [1]) }

        #expect(error?.code == code)
        let cause = error?.cause as? SystemCallError
        #expect(cause?.number == number && cause?.path?.contains(testStore.directory.path) == true)
        #expect(error?.message.contains("/") == false)
    }

    @Test("A key that does not match the catalog is rejected")
    func aKeyThatIsNotTheCatalogsIsRefused() throws {
        let directory = try TemporaryDirectory()
        try TestStore(in: directory).store.close()
        let path = directory.path("data/secret.key")

        for damage in [Data(repeating: 1, count: 32), Data(repeating: 1, count: 5), nil] {
            if let damage { try damage.write(to: URL(fileURLWithPath: path)) } else { unlink(path) }
            let error = #expect(throws: CacheError.self) { try TestStore(in: directory) }
            #expect(error?.code == .storageCorrupt)
            #expect(error?.message.contains("secret.key") == true)
        }
    }

    /// Reopens a store after damage to the file of its one asset, which claims 0–1000 and 5000–9000.
    private func reopened(after damage: (String) throws -> Void) async throws -> (TestStore, path: String) {
        let directory = try TemporaryDirectory()
        let path = try await {
            let testStore = try TestStore(in: directory)
            let file = try testStore.fill(1, 0..<1000, 5000..<9000)
            try await testStore.commits.flush()
            try testStore.store.close()
            return try #require(file.path)
        }()
        try damage(path)
        return (try TestStore(in: directory), path)
    }
}
