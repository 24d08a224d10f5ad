import CacheCore
import CacheTestKit
import Glibc
import Testing

@testable import CacheStore

/// Fails the n-th call on the disk, for every n, and looks at what the next start finds; on a store that has been through
/// all the failures before.
@Suite struct DiskFaultTests {
    @Test(arguments: [(ENOSPC, true), (EIO, false)])
    func whicheverCallFailsTheNextStartClaimsNoWrongByte(number: Int32, isLasting: Bool) async throws {
        let directory = try TemporaryDirectory()
        try Shelf(in: directory).store.close()
        var count = 1
        while true {
            let disk = FaultyDisk()
            disk.fail(after: count, with: number, isLasting: isLasting)
            let claimed = await Self.useAndKill(directory, disk)
            try await Self.check(directory, atLeast: claimed, "call \(count), errno \(number)")
            if disk.events.count < count { break }
            count += 1
        }
        #expect(count > 20)
    }

    /// Does a bit of everything, each step whether or not the one before it worked, and ends without a last flush.
    /// Answers what must be there afterwards: the extents of asset 1 that were flushed without an error.
    private static func useAndKill(_ directory: TemporaryDirectory, _ disk: FaultyDisk) async -> ByteRangeSet {
        // Failing is what these steps are for.
        guard let shelf = try? Shelf(in: directory, disk: disk) else { return ByteRangeSet() }
        defer { try? shelf.store.close() }
        let keeper = try? shelf.fill(1, 0..<5000)
        let doomed = try? shelf.fill(2, 0..<9000)
        var claimed = ByteRangeSet()
        if (try? await shelf.commits.flush()) != nil, keeper != nil { claimed = ByteRangeSet([0..<5000]) }
        if let keeper {
            _ = try? shelf.grow(keeper, 8192..<20000)
            claimed.remove(1000..<4500)
            _ = try? await shelf.commits.punch(keeper, [1000..<4500])
            _ = try? shelf.grow(keeper, 1000..<1100)
        }
        _ = try? shelf.fill(2, generation: 2, 0..<300)
        _ = try? await shelf.commits.flush()
        if let doomed { _ = try? shelf.grow(doomed, 9000..<9100) }
        _ = try? shelf.fill(3, 0..<300)
        _ = try? await shelf.commits.remove([Shelf.id(2), Shelf.id(3)])
        if let keeper { _ = try? shelf.grow(keeper, 20000..<30000) }
        return claimed
    }

    private static func check(
        _ directory: TemporaryDirectory, atLeast claimed: ByteRangeSet, _ label: Comment
    ) async throws {
        let shelf = try Shelf(in: directory)
        _ = try await shelf.store.reconcile()
        defer { try? shelf.store.close() }
        var files: Set<String> = []
        for asset in UInt64(1)...3 {
            guard let loaded = try await shelf.store.load(Shelf.id(asset)) else { continue }
            if let path = loaded.file?.path { files.insert(path) }
            for run in loaded.extents.runs {
                #expect(try loaded.file?.bytes(run) == Shelf.content(run), label)
            }
            if asset == 1 { #expect(claimed.runs.allSatisfy(loaded.extents.contains), label) }
        }
        #expect(try self.files(shelf) == files, label)
    }

    private static func files(_ shelf: Shelf) throws -> Set<String> {
        var paths: Set<String> = []
        for shard in StoreLayout.shards {
            let directory = shelf.store.layout.shard(shard)
            for name in try SystemDisk().list(directory) { paths.insert(directory + "/" + name) }
        }
        return paths
    }
}
