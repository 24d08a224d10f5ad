import CacheCore
import CacheTestKit
import Foundation
import GRDB
import Glibc
import Testing

@testable import CacheStore

@Suite struct StoreTests {
    @Test func aSecondUserOfTheDirectoryIsRefusedByName() throws {
        let shelf = try Shelf()

        let error = #expect(throws: CacheError.self) { try Shelf(in: shelf.directory) }

        #expect(error?.code == .conflict)
        #expect(error?.message.contains("process \(getpid())") == true)
        #expect(error?.message.contains(shelf.directory.path("data")) == true)
    }

    @Test func theDirectoryIsFreeAgainWhenTheStoreIsGone() throws {
        let directory = try TemporaryDirectory()
        for _ in 0..<3 { try Shelf(in: directory).store.close() }
    }

    @Test func aClosedStoreFailsInsteadOfPretending() async throws {
        let shelf = try Shelf()
        try shelf.fill(1, 0..<10)
        try shelf.store.close()

        await #expect(throws: CacheError.self) { try await shelf.commits.flush() }
        await #expect(throws: CacheError.self) { try await shelf.store.load(Shelf.id(1)) }
        await #expect(throws: CacheError.self) { try await shelf.store.catalog.savePolicy(PolicySettings()) }
    }

    @Test(arguments: [["notes.txt"], ["notes.txt", "secret.key.new"]])
    func aDirectoryOfOthersIsRefusedByNameAndLeftAsItWas(names: [String]) throws {
        let directory = try TemporaryDirectory()
        _ = try SystemDisk().createDirectory(directory.path("data"))
        for name in names { try Data("notes".utf8).write(to: URL(fileURLWithPath: directory.path("data/\(name)"))) }

        let error = #expect(throws: CacheError.self) { try Shelf(in: directory) }

        #expect(error?.code == .conflict)
        #expect(error?.message.contains("\(directory.path("data")) is not a store of Larder: it has notes.txt") == true)
        #expect(try SystemDisk().list(directory.path("data")).sorted() == names)
    }

    @Test func aDirectoryWithNothingButWhatFileSystemsMakeIsTaken() throws {
        let directory = try TemporaryDirectory()
        for name in ["data", "data/lost+found", "data/.keep"] {
            _ = try SystemDisk().createDirectory(directory.path(name))
        }
        try Shelf(in: directory).store.close()
        // Nor does what lies beside a store make it another's.
        try Data().write(to: URL(fileURLWithPath: directory.path("data/notes.txt")))
        try Shelf(in: directory).store.close()
    }

    /// Of a start in a new directory, power cuts may leave any name that was not synced yet.
    @Test(arguments: ["larder.lock", "secret.key.new"])
    func aDirectoryWithOneTraceOfAnEarlierStartIsTaken(name: String) throws {
        let directory = try TemporaryDirectory()
        _ = try SystemDisk().createDirectory(directory.path("data"))
        try Data("half a".utf8).write(to: URL(fileURLWithPath: directory.path("data/\(name)")))

        try Shelf(in: directory).store.close()

        #expect(try !SystemDisk().list(directory.path("data")).contains("secret.key.new"))
    }

    @Test(arguments: [true, false]) func aFileSystemThatIsReadOnlyIsNamed(isNew: Bool) throws {
        let directory = try TemporaryDirectory()
        if !isNew { try Shelf(in: directory).store.close() }
        let disk = FaultyDisk()
        disk.fail(isNew ? .createDirectory : .open, with: EROFS)

        let error = #expect(throws: CacheError.self) { try Shelf(in: directory, disk: disk) }

        #expect(error?.message.hasSuffix("the file system is read-only.") == true)
    }

    @Test func onlyTheOwnerMayReadTheDirectoryAndTheKey() throws {
        let shelf = try Shelf()
        for (name, mode) in [("data", 0o700), ("data/secret.key", 0o600), ("data/larder.lock", 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: shelf.directory.path(name))
            #expect(attributes[.posixPermissions] as? Int == mode, "\(name)")
        }
    }

    @Test func aFileNameSaysWhatItIsAndNothingElseIsOne() throws {
        let name = FileName(asset: Shelf.id(3), generation: 7, serial: 1 << 40 | 12)
        #expect(FileName(name.description) == name)
        let id = Shelf.id(3).description
        for text in ["", "\(id)-1.bytes", "\(id)-1-g.bytes", "\(id)-01-1.bytes", "\(id)-1-0A.bytes", "\(id)-1-1.byte"] {
            #expect(FileName(text) == nil, "\(text)")
        }
    }

    @Test func filesOfEarlierRunsWithoutRowsAreRemovedAndThoseOfThisRunStay() async throws {
        let directory = try TemporaryDirectory()
        let earlier = try Shelf(in: directory)
        let orphan = try #require(try earlier.fill(1, 0..<5000).path)
        try earlier.store.close()
        let shelf = try Shelf(in: directory)
        let fresh = try shelf.fill(2, 0..<5000)

        let result = try await shelf.store.reconcile()

        #expect(result.removedFiles == 1)
        #expect(try SystemDisk().status(of: orphan) == nil)
        #expect(try SystemDisk().status(of: try #require(fresh.path)) != nil)
        #expect(result.usedDiskBytes == 0)
        #expect(try await shelf.store.usedDiskBytes() == fresh.diskBytes())
    }

    @Test(arguments: [true, false]) func aRowWhoseFileIsGoneClaimsNothing(byLoading: Bool) async throws {
        let (shelf, path) = try await reopened { try SystemDisk().unlink($0) }

        if byLoading {
            let loaded = try #require(try await shelf.store.load(Shelf.id(1)))
            #expect(loaded.extents.isEmpty && loaded.file == nil)
        } else {
            #expect(try await shelf.store.reconcile().emptiedRows == 1)
        }

        let stored = try #require(try await shelf.store.catalog.asset(Shelf.id(1)))
        #expect(stored.extents.isEmpty && stored.file == nil)
        #expect(try await shelf.store.catalog.totals().cachedBytes == 0)
        #expect(try SystemDisk().status(of: path) == nil)
    }

    @Test(arguments: [true, false]) func extentsPastTheEndOfAFileAreCut(byLoading: Bool) async throws {
        let (shelf, _) = try await reopened { #expect(truncate($0, 5500) == 0) }

        if byLoading {
            #expect(try await shelf.store.load(Shelf.id(1))?.extents.runs == [0..<1000])
        } else {
            #expect(try await shelf.store.reconcile().cutRows == 1)
        }

        let stored = try #require(try await shelf.store.catalog.asset(Shelf.id(1)))
        // Of an extent that has lost its end nobody knows whether the rest is right.
        #expect(stored.extents.runs == [0..<1000])
        #expect(try await shelf.store.catalog.totals().cachedBytes == 1000)
    }

    @Test func oneFileIsOneObjectHoweverOftenItIsLoaded() async throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<10)
        try await shelf.commits.flush()

        #expect(try await shelf.store.load(Shelf.id(1))?.file === file)
    }

    @Test func aTransientFileLeavesNothingBehind() async throws {
        let shelf = try Shelf()
        let before = try FileManager.default.contentsOfDirectory(atPath: shelf.directory.path("data"))
        let file = try shelf.store.createTransient()
        try file.write(at: 0, [1, 2, 3])
        shelf.commits.grew(file, file.kept(0..<3))
        try await shelf.commits.flush()

        #expect(try file.bytes(0..<10) == [1, 2, 3])
        #expect(try FileManager.default.contentsOfDirectory(atPath: shelf.directory.path("data")) == before)
    }

    @Test func shortWritesAreGoneOnWith() throws {
        let disk = FaultyDisk()
        disk.limitWrites(to: 7)
        let shelf = try Shelf(disk: disk)
        let file = try shelf.fill(1, 0..<100)

        #expect(try file.bytes(0..<100) == Shelf.content(0..<100))
    }

    @Test func whatIsInThePageCacheIsReadAtOnce() throws {
        let shelf = try Shelf()
        let file = try shelf.fill(1, 0..<100)
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = bytes.withUnsafeMutableBytes { file.readNow(into: $0, at: 0) }

        // A file system that has no such reads answers nil, and is asked the slow way.
        if let count { #expect(count == 100 && bytes == Shelf.content(0..<100)) }
    }

    @Test(arguments: [
        (ENOSPC, CacheError.Code.storageFull), (EDQUOT, .storageFull), (EFBIG, .storageFull), (EIO, .storageCorrupt),
        (EMFILE, .overloaded), (EACCES, .internal), (EINVAL, .internal),
    ]) func aFailedWriteSaysWhy(number: Int32, code: CacheError.Code) throws {
        let disk = FaultyDisk()
        let shelf = try Shelf(disk: disk)
        let file = try shelf.fill(1)
        // Nor is there any memory for what finds no room.
        #expect(shelf.store.shelf.spill.take(64 << 20))
        disk.fail(.write, with: number)

        let error = #expect(throws: CacheError.self) { try file.write(at: 0, [1]) }

        #expect(error?.code == code)
        let cause = error?.cause as? SystemCallError
        #expect(cause?.number == number && cause?.path?.contains(shelf.directory.path) == true)
        #expect(error?.message.contains("/") == false)
    }

    @Test func aKeyThatIsNotTheCatalogsIsRefused() throws {
        let directory = try TemporaryDirectory()
        try Shelf(in: directory).store.close()
        let path = directory.path("data/secret.key")

        for damage in [Data(repeating: 1, count: 32), Data(repeating: 1, count: 5), nil] {
            if let damage { try damage.write(to: URL(fileURLWithPath: path)) } else { unlink(path) }
            let error = #expect(throws: CacheError.self) { try Shelf(in: directory) }
            #expect(error?.code == .storageCorrupt)
            #expect(error?.message.contains("secret.key") == true)
        }
    }

    /// A store opened again after something was done to the file of its one asset, which claims 0–1000 and 5000–9000.
    private func reopened(after damage: (String) throws -> Void) async throws -> (Shelf, path: String) {
        let directory = try TemporaryDirectory()
        let path = try await {
            let shelf = try Shelf(in: directory)
            let file = try shelf.fill(1, 0..<1000, 5000..<9000)
            try await shelf.commits.flush()
            try shelf.store.close()
            return try #require(file.path)
        }()
        try damage(path)
        return (try Shelf(in: directory), path)
    }
}
