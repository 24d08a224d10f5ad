import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import Testing

@testable import CacheEngine

/// The file of one asset can no longer be opened.
@Suite struct UnopenableFileTests {
    /// The operation that needs the file.
    enum Way: CaseIterable { case eviction, purge }

    @Test("A file that cannot be opened does not block other assets", arguments: Way.allCases)
    func itIsInTheWayOfNoOther(_ way: Way) async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000))
        let disk = FaultyDisk()
        bench.upstream.serve("/b.mp4", bench.asset)
        try await bench.cache(disk: disk).run { cache in
            for name in ["a.mp4", "b.mp4"] { _ = try await cache.body(of: name) }
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            cache.context.openAssets.closeAll()

            disk.fail(.open, with: EIO)
            switch way {
            case .eviction: _ = try await cache.evictions.evict(.free(bytes: 1 << 30), isDryRun: false)
            case .purge: try await cache.assets.delete(try await bench.id(in: cache), isSoft: false)
            }
            try await cache.context.commits.flush()

            #expect(try bench.directory.assetFiles().count == (way == .purge ? 1 : 0))
            let again = try await cache.body(of: "a.mp4")
            #expect(again.outcome.requestClass == .miss)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
        }
    }

    @Test("An asset with a pending removal is not opened from the catalog")
    func whatIsOnItsWayOutIsNotOpenedAgain() async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            cache.context.openAssets.closeAll()

            // The state after a purge with a failed commit.
            let id = try await bench.id(in: cache)
            cache.context.commits.discard(id)
            #expect(try await cache.body(of: "a.mp4").outcome.requestClass == .miss)
            try await cache.context.commits.flush()
            #expect(!cache.context.commits.isTakingOut(id))
            #expect(try await cache.body(of: "a.mp4").outcome.requestClass == .hit)
        }
    }

    @Test("An asset that may no longer be stored is no longer accounted")
    func whatMustNotBeKeptAnyMoreIsNotCountedAnyMore() async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000, cacheControl: "max-age=0"))
        let test = try bench.cache { $0.freshness = .respect }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4")
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            test.wallClock.advance(by: .seconds(1))
            bench.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000, cacheControl: "no-store"))
            let again = try await cache.body(of: "a.mp4")
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(
                try await eventually {
                    try await cache.context.commits.flush()
                    return cache.context.space.with { $0.usedBytes } == 0
                })
            #expect(try bench.directory.assetFiles().isEmpty)
        }
    }
}
