import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import Testing

@testable import CacheEngine

@Suite struct SpaceReservationsTests {
    @Test("A full disk is bypassed, and fills are stored again once it has space")
    func aFullDiskIsReadThroughAndKeepsAgainWhatComesWhenThereIsRoom() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.write, with: ENOSPC, isLasting: true)
            let through = try await cache.body(of: "a.mp4", 0..<200_000)
            disk.heal()
            #expect(try await eventually { try await cache.isAtRest() })
            #expect(try await eventually { try cache.trustsDisk() })
            let again = try await cache.body(of: "a.mp4", 0..<200_000)
            #expect(try await eventually { try await cache.isAtRest() })
            let kept = try await cache.body(of: "a.mp4", 0..<200_000)

            for read in [through, again, kept] { #expect(read.bytes.isSame(as: bench.asset.bytes(0..<200_000))) }
            #expect(kept.outcome.requestClass == .hit)
        }
    }

    @Test("An asset with unsynced bytes lost by the disk is refetched correctly")
    func anAssetWhoseBytesTheDiskLostIsFetchedAnewAndRight() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<200_000)
            disk.fail(.sync, with: EIO)
            _ = try? await cache.assets.page(AssetQuery())
            let same = try await cache.body(of: "a.mp4", 0..<200_000)
            let more = try await cache.body(of: "a.mp4", 1_000_000..<1_200_000)

            #expect(same.bytes.isSame(as: bench.asset.bytes(0..<200_000)))
            #expect(more.bytes.isSame(as: bench.asset.bytes(1_000_000..<1_200_000)))
        }
    }

    @Test("The accounted bytes equal the disk usage")
    func whatIsCountedIsWhatTheDiskHolds() async throws {
        let bench = try Bench()
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1_000_000)
            _ = try await cache.body(of: "a.mp4", 2_000_000..<2_000_001)
            _ = try await cache.assets.dropExtents(of: try await bench.id(in: cache), in: 0..<500_000)
            let used = try await test.store.usedDiskBytes()

            // The transfers end shortly after their last byte was read.
            #expect(try await eventually { cache.context.space.with { $0.reservedBytes } == 0 })
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == used })
            #expect(try await cache.assets.asset(try await bench.id(in: cache)).diskBytes == used)
        }
        let again = try bench.cache()
        try await again.run { cache in
            let used = try await again.store.usedDiskBytes()
            #expect(used > 500_000)
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == used })
        }
    }
}
