import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct EvictionTests {
    static let capacity: Int64 = 16 << 20
    static let small = PolicySettings(
        capacityBytes: capacity, highWatermark: 0.95, lowWatermark: 0.7, minFreeDiskBytes: 0, grace: .zero)

    @Test func anAssetFourTimesTheCapacityPassesThroughIt() async throws {
        let bench = try Bench(LoopbackAsset(size: 64 << 20))
        let test = try bench.cache(policy: Self.small) { $0.readAheadBytes = 2 << 20 }
        try await test.run { cache in
            let read = try await cache.read(Bench.media, request: ContentRequest())
            var position: Int64 = 0
            var isRight = true
            var highest: Int64 = 0
            while let bytes = try await read.nextBytes() {
                let run = position..<(position + Int64(bytes.count))
                isRight = isRight && bytes == bench.asset.bytes(run)
                position = run.upperBound
                if position % (4 << 20) == 0 { highest = max(highest, try await test.store.usedDiskBytes()) }
            }
            read.finish(.sent)
            let isSmall = try await eventually { try await test.store.usedDiskBytes() <= Self.capacity }

            #expect(isRight)
            #expect(position == bench.asset.size)
            #expect(highest < Self.capacity + (8 << 20))
            #expect(isSmall)
            #expect(bench.upstream.requestedBytes("/a.mp4") == bench.asset.size)
            #expect(try await cache.stats().evictedBytes > 40 << 20)
            let used = try await test.store.usedDiskBytes()
            #expect(cache.context.space.with { $0.usedBytes } == used)
        }
    }

    @Test func pinnedAssetsStayAndOthersGo() async throws {
        let bench = try Bench(LoopbackAsset(size: 5 << 20))
        for name in ["b", "c", "d"] { bench.upstream.serve("/\(name).mp4", LoopbackAsset(size: 5 << 20, seed: 7)) }
        try await bench.cache(policy: Self.small).run { cache in
            _ = try await cache.body(of: "a.mp4")
            let id = try await bench.id(in: cache)
            #expect(try await cache.patchAsset(id, AssetPatch(isPinned: true)).record.isPinned)
            for name in ["b", "c", "d"] { _ = try await cache.body(of: "\(name).mp4") }
            let hasEvicted = try await eventually { try await cache.stats().evictedBytes > 0 }
            let again = try await cache.body(of: "a.mp4")

            #expect(hasEvicted)
            #expect(again.outcome.requestClass == .hit)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
        }
    }

    @Test func whatAnUnmountedOriginLeftBehindIsEvictedLikeAnythingElse() async throws {
        let bench = try Bench(LoopbackAsset(size: 12 << 20))
        bench.upstream.serve("/b.mp4", LoopbackAsset(size: 12 << 20, seed: 2))
        let test = try TestCache(
            directory: bench.directory.path,
            origins: [TestCache.origin(bench.upstream), TestCache.origin(bench.upstream, name: "other")],
            policy: Self.small)
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4")
            try await cache.deleteOrigin("media", expectedRevision: nil)
            cache.context.openAssets.closeAll()
            let other = try await cache.body(of: "b.mp4", origin: "other")
            let isSmall = try await eventually { try await test.store.usedDiskBytes() <= Self.capacity }
            let left = try await cache.assets(AssetQuery(origin: "media")).items.reduce(0) { $0 + $1.cachedBytes }

            #expect(other.bytes.isSame(as: LoopbackBody.bytes(at: 0..<(12 << 20), seed: 2)))
            #expect(isSmall)
            #expect(left < 12 << 20)
        }
    }

    @Test func aDiskThatOthersFillCostsOnlyWhatIsMissing() async throws {
        let bench = try Bench(LoopbackAsset(size: 12 << 20))
        let disk = FaultyDisk()
        disk.pretendFree(100 << 20)
        let policy = PolicySettings(capacityBytes: 1 << 30, minFreeDiskBytes: 50 << 20, grace: .zero)
        try await bench.cache(policy: policy, disk: disk).run { cache in
            _ = try await cache.body(of: "a.mp4")
            disk.pretendFree(48 << 20)
            try await cache.evictor.makeRoom()
            let left = try await cache.asset(try await bench.id(in: cache)).cachedBytes

            #expect(left <= 10 << 20)
            #expect(left >= 8 << 20)
        }
    }

    @Test func aDiskWithoutAnyRoomStillServesReaders() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        disk.pretendFree(1 << 20)
        let policy = PolicySettings(capacityBytes: nil, minFreeDiskBytes: 50 << 20, grace: .zero)
        try await bench.cache(policy: policy, disk: disk) { $0.readTimeout = .seconds(5) }.run { cache in
            let read = try await cache.body(of: "a.mp4")

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
        }
    }

    @Test func evictionOnDemandFreesWhatADryRunPromised() async throws {
        let bench = try Bench(LoopbackAsset(size: 40 << 20))
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4")
            let before = try await test.store.usedDiskBytes()
            let plan = try await cache.evict(.free(bytes: 10 << 20), isDryRun: true)
            let planned = try await test.store.usedDiskBytes()
            let done = try await cache.evict(.free(bytes: 10 << 20), isDryRun: false)
            let after = try await test.store.usedDiskBytes()

            #expect(plan.freedBytes == 16 << 20)
            #expect(done.freedBytes == plan.freedBytes)
            // Blocks of the file system's own come and go by a few.
            #expect(abs(before - planned) < 64 << 10)
            #expect(abs(before - after - done.freedBytes) < 64 << 10)
        }
    }

    @Test func droppedExtentsAreFetchedAgainAndNothingElse() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let id = try await bench.id(in: cache)
            let dropped = try await cache.dropExtents(of: id, in: 100_000..<300_000)
            let before = bench.upstream.requests.count
            let again = try await cache.body(of: "a.mp4")

            #expect(dropped == 200_000)
            #expect(again.outcome.requestClass == .partial)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(bench.upstream.requests.dropFirst(before).compactMap(\.range) == [100_000..<300_000])
        }
    }
}
