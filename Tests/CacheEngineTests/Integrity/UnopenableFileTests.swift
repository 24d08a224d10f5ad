import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import Testing

@testable import CacheEngine

/// The disk does not give one asset's file any more.
@Suite struct UnopenableFileTests {
    enum Way: CaseIterable { case eviction, purge }

    @Test(arguments: Way.allCases) func itIsInTheWayOfNoOther(_ way: Way) async throws {
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
            case .eviction: _ = try await cache.evict(.free(bytes: 1 << 30), isDryRun: false)
            case .purge: try await cache.deleteAsset(try await bench.id(in: cache), isSoft: false)
            }
            try await cache.context.commits.flush()

            #expect(try bench.directory.assetFiles().count == (way == .purge ? 1 : 0))
            let again = try await cache.body(of: "a.mp4")
            #expect(again.outcome.requestClass == .miss)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
        }
    }

    @Test func whatIsOnItsWayOutIsNotOpenedAgain() async throws {
        let bench = try Bench(LoopbackAsset(size: 300_000))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            cache.context.openAssets.closeAll()

            // As a purge leaves it whose commit failed.
            let id = try await bench.id(in: cache)
            cache.context.commits.discard(id)
            #expect(try await cache.body(of: "a.mp4").outcome.requestClass == .miss)
            try await cache.context.commits.flush()
            #expect(!cache.context.commits.isTakingOut(id))
            #expect(try await cache.body(of: "a.mp4").outcome.requestClass == .hit)
        }
    }

    @Test func whatMustNotBeKeptAnyMoreIsNotCountedAnyMore() async throws {
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
