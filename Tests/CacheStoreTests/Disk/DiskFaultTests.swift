import CacheCore
import CacheTestKit
import Glibc
import Testing

@testable import CacheStore

/// Fails the n-th disk call, for every n, and checks the store at the next start. All rounds share one store.
@Suite struct DiskFaultTests {
    @Test("After any failing disk call the next start claims no wrong byte", arguments: [(ENOSPC, true), (EIO, false)])
    func whicheverCallFailsTheNextStartClaimsNoWrongByte(number: Int32, isLasting: Bool) async throws {
        let directory = try TemporaryDirectory()
        try TestStore(in: directory).store.close()
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

    /// Performs each kind of change, continues after failures, and ends without a final flush. Returns the extents of
    /// asset 1 that must survive: those flushed without an error.
    private static func useAndKill(_ directory: TemporaryDirectory, _ disk: FaultyDisk) async -> ByteRangeSet {
        // The injected fault can fail any of these steps.
        guard let testStore = try? TestStore(in: directory, disk: disk) else { return ByteRangeSet() }
        defer { try? testStore.store.close() }
        let keeper = try? testStore.fill(1, 0..<5000)
        let markedForPunch = try? testStore.fill(2, 0..<9000)
        var claimed = ByteRangeSet()
        if (try? await testStore.commits.flush()) != nil, keeper != nil { claimed = ByteRangeSet([0..<5000]) }
        if let keeper {
            _ = try? testStore.grow(keeper, 8192..<20000)
            claimed.remove(1000..<4500)
            _ = try? await testStore.commits.punch(keeper, [1000..<4500])
            _ = try? testStore.grow(keeper, 1000..<1100)
        }
        _ = try? testStore.fill(2, generation: 2, 0..<300)
        _ = try? await testStore.commits.flush()
        if let markedForPunch { _ = try? testStore.grow(markedForPunch, 9000..<9100) }
        _ = try? testStore.fill(3, 0..<300)
        _ = try? await testStore.commits.remove([TestStore.id(2), TestStore.id(3)])
        if let keeper { _ = try? testStore.grow(keeper, 20000..<30000) }
        return claimed
    }

    private static func check(
        _ directory: TemporaryDirectory, atLeast claimed: ByteRangeSet, _ label: Comment
    ) async throws {
        let testStore = try TestStore(in: directory)
        _ = try await testStore.store.reconcile()
        defer { try? testStore.store.close() }
        var files: Set<String> = []
        for asset in UInt64(1)...3 {
            guard let loaded = try await testStore.store.load(TestStore.id(asset)) else { continue }
            if let path = loaded.file?.path { files.insert(path) }
            for run in loaded.extents.runs {
                #expect(try loaded.file?.bytes(run) == TestStore.content(run), label)
            }
            if asset == 1 { #expect(claimed.runs.allSatisfy(loaded.extents.contains), label) }
        }
        #expect(try self.files(testStore) == files, label)
    }

    private static func files(_ testStore: TestStore) throws -> Set<String> {
        var paths: Set<String> = []
        for shard in StoreLayout.shards {
            let directory = testStore.store.layout.shard(shard)
            for name in try SystemDisk().list(directory) { paths.insert(directory + "/" + name) }
        }
        return paths
    }
}
