import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct EvictionTests {
    static let capacity: Int64 = 16 << 20
    static let small = PolicySettings(
        capacityBytes: capacity, highWatermark: 0.95, lowWatermark: 0.7, minFreeDiskBytes: 0, grace: .zero)

    /// Reads the assets and waits for the end of their fills, because a running fill pins its bytes.
    private func fetch(_ names: [String], through cache: AssetCache) async throws {
        for name in names { _ = try await cache.body(of: name) }
        let isQuiet = try await eventually {
            cache.context.openAssets.all.allSatisfy { $0.look { $0.ledger.fillCount } == 0 }
        }
        #expect(isQuiet)
    }

    /// Flushes the commit queue and closes all open assets.
    private func close(_ cache: AssetCache) async throws {
        try await cache.context.commits.flush()
        cache.context.openAssets.closeAll()
    }

    @Test("An asset of four times the capacity is read within the capacity")
    func anAssetFourTimesTheCapacityPassesThroughIt() async throws {
        let bench = try Bench(LoopbackAsset(size: 64 << 20))
        let test = try bench.cache(policy: Self.small) { $0.readAheadBytes = 2 << 20 }
        try await test.run { cache in
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
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
            #expect(try await cache.statistics.snapshot().evictedBytes > 40 << 20)
            let agrees = try await eventually {  // the eviction may still be running
                try await test.store.usedDiskBytes() == cache.context.space.with { $0.usedBytes }
            }
            #expect(agrees)
        }
    }

    @Test("Pinned assets stay, and other assets are evicted")
    func pinnedAssetsStayAndOthersGo() async throws {
        let bench = try Bench(LoopbackAsset(size: 5 << 20))
        for name in ["b", "c", "d"] { bench.upstream.serve("/\(name).mp4", LoopbackAsset(size: 5 << 20, seed: 7)) }
        try await bench.cache(policy: Self.small).run { cache in
            try await fetch(["a.mp4"], through: cache)
            let id = try await bench.id(in: cache)
            #expect(try await cache.assets.patch(id, AssetPatch(isPinned: true)).record.isPinned)
            for name in ["b", "c", "d"] { _ = try await cache.body(of: "\(name).mp4") }
            let hasEvicted = try await eventually { try await cache.statistics.snapshot().evictedBytes > 0 }
            let again = try await cache.body(of: "a.mp4")

            #expect(hasEvicted)
            #expect(again.outcome.requestClass == .hit)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
        }
    }

    @Test("An asset idle beyond maxIdle is evicted first, however often it was read")
    func whatWasNotReadForTooLongGoesBeforeAnythingElseHoweverOftenItWasRead() async throws {
        let bench = try Bench(LoopbackAsset(size: 2 << 20))
        for name in ["b", "c", "d", "e"] { bench.upstream.serve("/\(name).mp4", LoopbackAsset(size: 4 << 20)) }
        var policy = Self.small
        policy.maxIdle = .seconds(1000)
        let test = try bench.cache(policy: policy)
        try await test.run { cache in
            for _ in 0..<4 {
                _ = try await cache.body(of: "a.mp4")
                test.wallClock.advance(by: .seconds(300))
            }
            _ = try await cache.assets.page(AssetQuery())
            test.wallClock.advance(by: .seconds(701))
            for name in ["b", "c", "d", "e"] { _ = try await cache.body(of: "\(name).mp4") }
            let hasGone = try await eventually { try await cache.evictions.page(EvictionQuery()).items.count > 1 }
            let first = try await cache.evictions.page(EvictionQuery()).items.last

            #expect(hasGone)
            #expect(first?.key == "/o/media/a.mp4")
            #expect(first?.reason == .idle)
        }
    }

    @Test("Assets of an unmounted origin can be evicted")
    func whatAnUnmountedOriginLeftBehindIsEvictedLikeAnythingElse() async throws {
        let bench = try Bench(LoopbackAsset(size: 12 << 20))
        bench.upstream.serve("/b.mp4", LoopbackAsset(size: 12 << 20, seed: 2))
        let test = try TestCache(
            directory: bench.directory.path,
            origins: [TestCache.origin(bench.upstream), TestCache.origin(bench.upstream, name: "other")],
            policy: Self.small)
        try await test.run { cache in
            try await fetch(["a.mp4"], through: cache)
            try await cache.configuration.deleteOrigin("media")
            try await close(cache)
            let other = try await cache.body(of: "b.mp4", origin: "other")
            let isSmall = try await eventually { try await test.store.usedDiskBytes() <= Self.capacity }
            let left = try await cache.assets.page(AssetQuery(origin: "media")).items.reduce(0) { $0 + $1.cachedBytes }

            #expect(other.bytes.isSame(as: LoopbackBody.bytes(at: 0..<(12 << 20), seed: 2)))
            #expect(isSmall)
            #expect(left < 12 << 20)
        }
    }

    @Test("Low free disk space evicts only the missing bytes")
    func aDiskThatOthersFillCostsOnlyWhatIsMissing() async throws {
        let bench = try Bench(LoopbackAsset(size: 12 << 20))
        let disk = FaultyDisk()
        disk.pretendFree(100 << 20)
        let policy = PolicySettings(capacityBytes: 1 << 30, minFreeDiskBytes: 50 << 20, grace: .zero)
        try await bench.cache(policy: policy, disk: disk).run { cache in
            try await fetch(["a.mp4"], through: cache)
            disk.pretendFree(48 << 20)
            try await cache.evictor.makeRoom()
            let left = try await cache.assets.asset(try await bench.id(in: cache)).cachedBytes

            #expect(left <= 10 << 20)
            #expect(left >= 8 << 20)
        }
    }

    @Test("A full disk still serves readers")
    func aDiskWithoutAnyRoomStillServesReaders() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        disk.pretendFree(1 << 20)
        let policy = PolicySettings(capacityBytes: nil, minFreeDiskBytes: 50 << 20, grace: .zero)
        let test = try bench.cache(policy: policy, disk: disk) { $0.readTimeout = .seconds(5) }
        try await test.run { cache in
            let read = try await cache.body(of: "a.mp4")
            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            #expect(try await test.store.usedDiskBytes() == 0, "a disk below minFreeDisk must not store bytes")

            disk.pretendFree(100 << 20)
            try await cache.evictor.makeRoom()
            try await close(cache)
            let kept = try await cache.body(of: "a.mp4")
            #expect(kept.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(try await eventually { try await test.store.usedDiskBytes() >= bench.asset.size })
        }
    }

    @Test("Eviction on demand frees as many bytes as its dry run")
    func evictionOnDemandFreesWhatADryRunPromised() async throws {
        let bench = try Bench(LoopbackAsset(size: 40 << 20))
        let test = try bench.cache()
        try await test.run { cache in
            try await fetch(["a.mp4"], through: cache)
            let before = try await test.store.usedDiskBytes()
            let plan = try await cache.evictions.evict(.free(bytes: 10 << 20), isDryRun: true)
            let planned = try await test.store.usedDiskBytes()
            let done = try await cache.evictions.evict(.free(bytes: 10 << 20), isDryRun: false)
            let after = try await test.store.usedDiskBytes()

            #expect(plan.freedBytes == 16 << 20)
            #expect(done.freedBytes == plan.freedBytes)
            // The file system may allocate or free a few blocks of its own.
            #expect(abs(before - planned) < 64 << 10)
            #expect(abs(before - after - done.freedBytes) < 64 << 10)
        }
    }

    @Test("One eviction removes whole assets with their files and parts of a larger asset")
    func aBatchTakesWholeAssetsWithTheirFilesAndPartsOfOthers() async throws {
        let bench = try Bench(LoopbackAsset(size: 40 << 20))
        let names = (0..<9).map { "small\($0).mp4" }
        for name in names { bench.upstream.serve("/\(name)", LoopbackAsset(size: 1 << 20)) }
        let test = try bench.cache()
        try await test.run { cache in
            try await fetch(names + ["a.mp4"], through: cache)
            try await close(cache)
            let before = try await test.store.usedDiskBytes()
            let report = try await cache.evictions.evict(.free(bytes: 10 << 20), isDryRun: false)
            let left = try await cache.assets.page(AssetQuery()).items
            let after = try await test.store.usedDiskBytes()
            let again = try await cache.body(of: "a.mp4")

            #expect(report.entries.map(\.key) == (names + ["a.mp4"]).map { "/o/media/" + $0 })
            #expect(report.assets == 10)
            #expect(report.freedBytes == 25 << 20)
            #expect(left.map(\.cachedBytes) == [24 << 20])
            #expect(abs(before - after - report.freedBytes) < 64 << 10)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            let used = try await test.store.usedDiskBytes()
            #expect(abs(cache.context.space.with { $0.usedBytes } - used) < 64 << 10)
        }
    }

    @Test("Assets read again outlast assets read once after a change of algorithm")
    func whatWasReadAgainOutlastsWhatWasNotUnderAnotherAlgorithm() async throws {
        let bench = try Bench()
        let names = (0..<8).map { "small\($0).mp4" }
        for name in names { bench.upstream.serve("/\(name)", LoopbackAsset(size: 1 << 20)) }
        let test = try bench.cache()
        try await test.run { cache in
            for name in names { _ = try await cache.body(of: name) }
            for name in names.prefix(3) { _ = try await cache.body(of: name) }
            for algorithm in EvictionAlgorithm.allCases {
                var policy = TestCache.policy
                policy.algorithm = algorithm
                _ = try await cache.configuration.setPolicy(policy)
                let plan = try await cache.evictions.evict(.free(bytes: 5 << 20), isDryRun: true)

                let expected = names.dropFirst(3).map { "/o/media/" + $0 }
                #expect(Set(plan.entries.map(\.key)) == Set(expected), "\(algorithm)")
            }
        }
    }

    @Test("A reduced capacity evicts in its own segment size")
    func aSmallerCapacityOnALiveStoreEvictsInTheSegmentsOfItsOwn() async throws {
        let bench = try Bench(LoopbackAsset(size: 40 << 20))
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4")
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            _ = try await cache.configuration.setPolicy(Self.small)
            let isSmall = try await eventually { try await test.store.usedDiskBytes() <= Self.capacity }
            var bytes: [UInt8] = []
            while let next = try await read.nextBytes() { bytes += next }
            read.finish(.sent)

            #expect(cache.context.space.grid.segmentBytes == 1 << 20)
            #expect(isSmall)
            #expect(bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            let isSmallAgain = try await eventually { try await test.store.usedDiskBytes() <= Self.capacity }
            #expect(isSmallAgain)
        }
    }

    @Test("Assets read again outlast assets read once after a restart", arguments: EvictionAlgorithm.allCases)
    func whatWasReadAgainOutlastsWhatWasNotAfterARestart(algorithm: EvictionAlgorithm) async throws {
        let bench = try Bench()
        let names = (0..<6).map { "small\($0).mp4" }
        for name in names { bench.upstream.serve("/\(name)", LoopbackAsset(size: 1 << 20)) }
        var policy = Self.small
        policy.algorithm = algorithm
        let kept = try bench.cache(policy: policy)
        try await kept.run { cache in
            for name in names { _ = try await cache.body(of: name) }
            for _ in 0..<2 {
                for name in names.prefix(2) { _ = try await cache.body(of: name) }
                kept.wallClock.advance(by: .seconds(300))
            }
            // The most recent read, but of an asset that was read only once before.
            _ = try await cache.body(of: "small5.mp4", 0..<1)
            #expect(try await eventually { cache.stateWriter.isReady })
        }
        try await bench.cache(policy: policy).run { cache in
            #expect(try await eventually { cache.stateWriter.isReady })
            let plan = try await cache.evictions.evict(.free(bytes: 3 << 20), isDryRun: true)
            let heats = try await cache.assets.map(of: plan.entries[0].assetID, buckets: 1)

            #expect(Set(plan.entries.map(\.key)).isDisjoint(with: names.prefix(2).map { "/o/media/" + $0 }))
            #expect(plan.assets == 3)
            #expect(heats[0].heat == 0)
        }
    }

    @Test("The read that caused the fill does not count as a reuse")
    func whoHadTheBytesFetchedDoesNotMakeThemHot() async throws {
        let bench = try Bench()
        let test = try bench.cache()
        try await test.run { cache in
            var heats: [Int64] = []
            for seconds in [0, 1, 1, 300] as [Int64] {
                test.wallClock.advance(by: .seconds(seconds))
                _ = try await cache.body(of: "a.mp4")
                heats.append(try await cache.assets.map(of: try await bench.id(in: cache), buckets: 1)[0].heat)
            }

            #expect(heats == [0, 1, 1, 2])
        }
    }

    @Test("Assets without bytes have a total; the longest unread ones go, and none that is pinned")
    func emptyAssetsHaveATotal() async throws {
        let bench = try Bench()
        let test = try bench.cache()
        try await test.run { cache in
            try await fetch(["a.mp4"], through: cache)
            for number in 1...5 {
                bench.upstream.serve("/\(number).mp4", LoopbackAsset(size: 0))
                test.wallClock.advance(by: .seconds(1))
                try await fetch(["\(number).mp4"], through: cache)
            }
            try await cache.context.commits.flush()
            let before = try await keys(in: cache)
            let first = try await cache.resolver.resolve(.mounted(origin: "media", path: "1.mp4", key: nil)).id
            _ = try await cache.assets.patch(first, AssetPatch(isPinned: true))
            try await cache.removeEmptyAssets(beyond: 2, atOnce: 1)
            let after = try await keys(in: cache)

            #expect(before == ["1", "2", "3", "4", "5", "a"].map { "/o/media/\($0).mp4" })
            #expect(after == ["1", "4", "5", "a"].map { "/o/media/\($0).mp4" })
        }
    }

    private func keys(in cache: AssetCache) async throws -> [String] {
        try await cache.assets.page(AssetQuery()).items.map(\.record.key).sorted()
    }

    @Test("The last user of an asset removes it if it has lost all bytes", arguments: [false, true])
    func anEmptiedAssetGoesWithItsLastUser(isFetchedAgain: Bool) async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            try await fetch(["a.mp4"], through: cache)
            let id = try await bench.id(in: cache)
            let asset = try #require(cache.context.openAssets.acquire(id))
            _ = try await cache.assets.dropExtents(of: id, in: 0..<Int64.max)
            let inUse = try await cache.context.store.catalog.asset(id)
            if isFetchedAgain { try await fetch(["a.mp4"], through: cache) }
            cache.context.openAssets.release(asset)
            try await cache.context.commits.flush()

            let isLeft = try await cache.context.store.catalog.asset(id) != nil

            #expect(inUse != nil)
            #expect(isLeft == isFetchedAgain)
        }
    }

    @Test("Only dropped extents are fetched again")
    func droppedExtentsAreFetchedAgainAndNothingElse() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            try await fetch(["a.mp4"], through: cache)
            let id = try await bench.id(in: cache)
            let dropped = try await cache.assets.dropExtents(of: id, in: 100_000..<300_000)
            let before = bench.upstream.requests.count
            let again = try await cache.body(of: "a.mp4")

            #expect(dropped == 200_000)
            #expect(again.outcome.requestClass == .partial)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(bench.upstream.requests.dropFirst(before).compactMap(\.range) == [100_000..<300_000])
        }
    }
}
