import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

/// Fails the n-th call on the disk while a cache fills, serves, evicts, purges and starts again. Bytes that are served are right,
/// or the read fails; the service answers afterwards, and so does the next one; nothing on disk is wrong.
///
/// Every n is tried where `FAULTS=all` is in the environment, else a few of them.
@Suite(.timeLimit(.minutes(60))) struct DiskCallFaultTests {
    private static let numbers: [Int32] = [ENOSPC, EIO, EDQUOT, EFBIG, EMFILE, ENFILE]

    @Test(arguments: numbers) func whicheverCallFailsNothingWrongIsServed(number: Int32) async throws {
        let isThorough = ProcessInfo.processInfo.environment["FAULTS"] == "all"
        var count = 1 + Int(number) % 7
        while true {
            let bench = try Bench(LoopbackAsset(size: 900_000))
            try await bench.cache().run { _ in }
            let disk = FaultyDisk()
            disk.fail(after: count, with: number)
            let label: Comment = "call \(count), errno \(number)"
            try await Self.use(bench, disk, label)
            try await Self.check(bench, label)
            bench.upstream.stop()
            if disk.events.count < count { break }
            count += isThorough ? 1 : 23
        }
        #expect(count > 60)
    }

    /// One life of a cache, on a disk of which one call fails.
    private static func use(_ bench: Bench, _ disk: FaultyDisk, _ label: Comment) async throws {
        // A start may fail, and says why.
        guard let test = try? bench.cache(disk: disk) else { return }
        try? await test.run { cache in
            var isRight = true
            for range in [0..<300_000, 200_000..<900_000, 0..<900_000] as [ByteRange] {
                isRight = await reads(bench, cache, range) && isRight
            }
            // Each of these may be what fails.
            _ = try? await cache.evict(.free(bytes: 300_000), isDryRun: false)
            isRight = await reads(bench, cache, 100_000..<800_000) && isRight
            if let id = try? await bench.id(in: cache) { try? await cache.deleteAsset(id, isSoft: false) }
            isRight = await reads(bench, cache, 0..<600_000) && isRight
            #expect(isRight, label)
            // The fault has gone by: the service is well again.
            disk.heal()
            let isWell = try await eventually(within: .seconds(30)) {
                (try? await cache.body(of: "a.mp4", 0..<900_000).bytes.isSame(as: bench.asset.bytes(0..<900_000)))
                    ?? false
            }
            #expect(isWell, label)
        }
    }

    /// Whether what was read, if it was, is right.
    private static func reads(_ bench: Bench, _ cache: AssetCache, _ range: ByteRange) async -> Bool {
        guard let read = try? await cache.body(of: "a.mp4", range) else { return true }
        return read.bytes.isSame(as: bench.asset.bytes(range))
    }

    /// The next life, on a disk that is well; then a look at all of it.
    private static func check(_ bench: Bench, _ label: Comment) async throws {
        try await bench.cache { $0.verification = .always }.run { cache in
            let read = try await cache.body(of: "a.mp4")
            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)), label)
            #expect(try await cache.stats().integrity.badBlocks == 0, label)
            try await cache.context.commits.flush()
            _ = try await cache.context.store.reconcile()
            let audit = try await cache.context.store.audit(repairing: false)
            #expect(audit.findings == [], label)
        }
    }

    @Test func writesAndReadsThatComeInPiecesAreMadeWhole() async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000))
        let disk = FaultyDisk()
        disk.limitWrites(to: 1000)
        disk.limitReads(to: 777)
        try await bench.cache(disk: disk) { $0.verification = .always }.run { cache in
            for _ in 0..<2 {
                let read = try await cache.body(of: "a.mp4")
                #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            }
            #expect(try await cache.stats().integrity.badBlocks == 0)
        }
    }
}
