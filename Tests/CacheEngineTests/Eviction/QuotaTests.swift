import CacheCore
import CacheStore
import CacheTestKit
import CurlUpstream
import Testing

@testable import CacheEngine

/// Quotas of origins and tags, and store rules, on a live cache.
@Suite struct QuotaTests {
    private func cachedBytes(_ origin: String, in cache: AssetCache) async throws -> Int64 {
        try await cache.assets.page(AssetQuery(origin: origin)).items.reduce(0) { $0 + $1.cachedBytes }
    }

    private func cache(_ bench: Bench, _ change: (inout OriginSettings) -> Void) throws -> TestCache {
        for name in 0..<6 { bench.upstream.serve("/\(name).mp4", LoopbackAsset(size: 1 << 20)) }
        var origin = TestCache.origin(bench.upstream)
        change(&origin.settings)
        return try TestCache(
            directory: bench.directory.path, origins: [origin, TestCache.origin(bench.upstream, name: "other")])
    }

    @Test("An origin above its quota evicts only its own assets")
    func anOriginAboveItsQuotaGivesUpItsOwnAndNothingElse() async throws {
        let bench = try Bench()
        try await cache(bench) { $0.quota.maxBytes = 2 << 20 }.run { cache in
            for origin in ["other", "media"] {
                for name in 0..<6 { _ = try await cache.body(of: "\(name).mp4", origin: origin) }
            }
            let isKept = try await eventually { try await cachedBytes("media", in: cache) <= 2 << 20 }
            // The log lists a range after its space is free.
            var log: [EvictionRecord] = []
            let isLogged = try await eventually {
                log = try await cache.evictions.page(EvictionQuery(reason: .quota)).items
                return log.reduce(0) { $0 + $1.bytes } >= 4 << 20
            }

            #expect(isKept && isLogged)
            #expect(try await cachedBytes("other", in: cache) == 6 << 20)
            #expect(Set(log.map(\.origin)) == ["media"])
        }
    }

    @Test("A quota added later counts cached bytes")
    func aQuotaThatIsSetLaterCountsWhatIsThere() async throws {
        let bench = try Bench()
        try await cache(bench) { _ in }.run { cache in
            for name in 0..<6 { _ = try await cache.body(of: "\(name).mp4") }
            var (origin, _) = try cache.configuration.origin("media")
            origin.settings.quota.maxBytes = 3 << 20
            _ = try await cache.configuration.setOrigin(origin)
            let isKept = try await eventually { try await cachedBytes("media", in: cache) <= 3 << 20 }

            #expect(isKept)
        }
    }

    @Test("The guaranteed bytes of an origin stay while other origins can be evicted")
    func whatIsGuaranteedToAnOriginStaysWhileOthersHaveAnything() async throws {
        let bench = try Bench()
        try await cache(bench) { $0.quota.minBytes = 6 << 20 }.run { cache in
            for origin in ["media", "other"] {
                for name in 0..<6 { _ = try await cache.body(of: "\(name).mp4", origin: origin) }
            }
            // A running fill pins its bytes.
            #expect(try await eventually { try await cache.isAtRest() })
            let first = try await cache.evictions.evict(.free(bytes: 4 << 20), isDryRun: false)
            let rest = try await cache.evictions.evict(.free(bytes: 8 << 20), isDryRun: false)

            #expect(first.entries.allSatisfy { $0.key.hasPrefix("/o/other/") })
            #expect(first.freedBytes == 4 << 20)
            #expect(rest.freedBytes == 8 << 20)
        }
    }

    private func setQuotas(_ quotas: [String: Quota], in cache: AssetCache) async throws {
        var policy = TestCache.policy
        policy.tagQuotas = quotas
        _ = try await cache.configuration.setPolicy(policy)
    }

    @Test("A tag above its quota evicts its assets of every origin")
    func aTagAboveItsQuotaGivesUpItsAssetsWhateverTheirOrigin() async throws {
        let bench = try Bench()
        try await cache(bench) { _ in }.run { cache in
            for origin in ["media", "other"] {
                for name in 0..<6 { _ = try await cache.body(of: "\(name).mp4", origin: origin) }
            }
            let ids = try await cache.assets.page(AssetQuery()).items.map(\.record.id)
            try await setQuotas(["promo": Quota(maxBytes: 3 << 20)], in: cache)
            for id in ids.prefix(8) { _ = try await cache.assets.patch(id, AssetPatch(tags: ["promo", "new"])) }
            let isKept = try await eventually {
                try await cache.assets.page(AssetQuery(tag: "promo")).items.reduce(0) { $0 + $1.cachedBytes } <= 3 << 20
            }
            // An eviction is logged after its commit.
            var log: [EvictionRecord] = []
            let isLogged = try await eventually {
                log = try await cache.evictions.page(EvictionQuery(reason: .quota)).items
                return log.reduce(0) { $0 + $1.bytes } >= 5 << 20
            }

            let status = QuotaStatus(owner: .tag("promo"), quota: Quota(maxBytes: 3 << 20), cachedBytes: 3 << 20)
            let isNotified = try await eventually { try await cache.statistics.snapshot().store.quotas == [status] }

            #expect(isKept && isLogged)
            #expect(isNotified)
            #expect(try await eventually { try await cache.isAtRest() })
            #expect(Set(log.map(\.assetID)).isSubset(of: ids.prefix(8)))
            #expect(log.reduce(0) { $0 + $1.bytes } == 5 << 20)
            for id in ids.dropFirst(8) { #expect(try await cache.assets.asset(id).cachedBytes == 1 << 20) }
        }
    }

    @Test("A tag quota outlasts a restart and counts cached bytes")
    func aTagsQuotaOutlastsARestartAndCountsWhatIsThere() async throws {
        let bench = try Bench()
        let pinned = try await cache(bench) { _ in }.run { cache in
            for name in 0..<6 { _ = try await cache.body(of: "\(name).mp4") }
            let ids = try await cache.assets.page(AssetQuery()).items.map(\.record.id)
            for id in ids.prefix(4) {
                _ = try await cache.assets.patch(id, AssetPatch(isPinned: true, tags: ["promo"]))
            }
            try await setQuotas(["promo": Quota(maxBytes: 2 << 20)], in: cache)
            return ids.prefix(4)
        }
        try await cache(bench) { _ in }.run { cache in
            for id in pinned { _ = try await cache.assets.patch(id, AssetPatch(isPinned: false)) }
            let isKept = try await eventually {
                try await cache.assets.page(AssetQuery(tag: "promo")).items.reduce(0) { $0 + $1.cachedBytes } <= 2 << 20
            }

            #expect(isKept)
            #expect(try await cachedBytes("media", in: cache) == 4 << 20)
        }
    }

    @Test("Eviction candidates of a quota state its owner")
    func whatGoesNextForAQuotaIsToldWithItsOwner() async throws {
        let bench = try Bench()
        let test = try cache(bench) { $0.quota.maxBytes = 2 << 20 }
        try await test.cache.prepare()  // without the background services, which would evict
        var policy = TestCache.policy
        policy.tagQuotas = ["promo": Quota(maxBytes: 1 << 20)]
        _ = try await test.cache.configuration.setPolicy(policy)
        let id = { (number: UInt64) in AssetID(high: 0, low: number) }
        for number in 1...5 as ClosedRange<UInt64> {
            let owners = AssetOwners(origin: number == 5 ? "other" : "media", tags: number > 3 ? ["promo"] : [])
            test.cache.context.space.arrived([0..<1 << 20], of: id(number), from: owners, at: test.wallClock.now())
        }
        test.wallClock.advance(by: .seconds(3600))
        let next = test.cache.evictor.next(toFree: 4 << 20, limit: 10).map(\.account)
        test.pool.shutdown()
        try test.store.close()

        // Two segments exceed the quota of the origin and one exceeds that of the tag. One segment may count for both.
        #expect(next.count == 4)
        #expect(next.prefix(2).allSatisfy { $0.reason == .quota && $0.quotaOwner != nil })
        #expect(next.last?.reason == .capacity && next.last?.quotaOwner == nil)
        #expect(Set(next.map(\.quotaOwner)) == [.origin("media"), .tag("promo"), nil])
    }

    @Test("A pin expires at its time")
    func aPinEndsAtItsTime() async throws {
        let bench = try Bench()
        let test = try cache(bench) { _ in }
        try await test.run { cache in
            _ = try await cache.body(of: "0.mp4")
            let id = try await cache.assets.page(AssetQuery()).items[0].record.id
            let end = test.wallClock.now() + .seconds(60)
            let pinned = try await cache.assets.patch(id, AssetPatch(isPinned: true, pinnedUntil: end)).record
            try await cache.expire()
            let spared = try await cache.evictions.evict(.free(bytes: 1), isDryRun: true).assets
            test.wallClock.advance(by: .seconds(60))
            try await cache.expire()
            let unpinned = try await cache.assets.asset(id).record
            let taken = try await cache.evictions.evict(.free(bytes: 1), isDryRun: true).assets
            let past = await #expect(throws: CacheError.self) {
                try await cache.assets.patch(id, AssetPatch(isPinned: true, pinnedUntil: end))
            }

            #expect(pinned.isPinned && pinned.pinnedUntil == end && spared == 0)
            #expect(!unpinned.isPinned && unpinned.pinnedUntil == nil && taken == 1)
            #expect(past?.code == .invalidField("pinnedUntilAt"))
        }
    }

    @Test("Pins above maxPinnedBytes are rejected")
    func noMoreIsPinnedThanThePolicyAllows() async throws {
        let bench = try Bench()
        try await cache(bench) { _ in }.run { cache in
            var policy = TestCache.policy
            policy.maxPinnedBytes = 1 << 20
            _ = try await cache.configuration.setPolicy(policy)
            _ = try await cache.body(of: "0.mp4", 0..<1000)
            _ = try await cache.body(of: "1.mp4", 0..<1000)
            let ids = try await cache.assets.page(AssetQuery()).items.map(\.record.id)
            let first = try await cache.assets.patch(ids[0], AssetPatch(isPinned: true)).record.isPinned
            let refused = await #expect(throws: CacheError.self) {
                try await cache.assets.patch(ids[1], AssetPatch(isPinned: true))
            }

            #expect(first)
            #expect(refused?.code == .conflict)
            #expect(try await !cache.assets.asset(ids[1]).record.isPinned)
            #expect(try await cache.assets.patch(ids[0], AssetPatch(isPinned: true)).record.isPinned)
        }
    }

    @Test("An asset below minUses is served but not stored")
    func whatIsAskedForOnceIsSentAndNotKept() async throws {
        let bench = try Bench()
        let test = try cache(bench) { _ in }
        try await test.run { cache in
            var policy = TestCache.policy
            policy.minUses = 2
            _ = try await cache.configuration.setPolicy(policy)
            var classes: [ReadOutcome.Class] = []
            for seconds in [0, 1, 300, 1] as [Int64] {
                test.wallClock.advance(by: .seconds(seconds))
                let read = try await cache.body(of: "0.mp4")
                classes.append(read.outcome.requestClass)
                #expect(read.bytes.count == 1 << 20)
            }

            #expect(classes == [.bypass, .bypass, .miss, .hit])
        }
    }

    @Test("An asset excluded by the store rules is served but not stored")
    func whatTheRulesForbidIsSentAndNotKept() async throws {
        let bench = try Bench()
        bench.upstream.serve("/long.mp4", LoopbackAsset(size: 300_000, contentType: "video/mp4"))
        bench.upstream.serve("/list.m3u8", LoopbackAsset(size: 1000, contentType: "application/vnd.apple.mpegurl"))
        bench.upstream.serve("/short.mp4", LoopbackAsset(size: 1000, contentType: "video/mp4"))
        try await cache(bench) { settings in
            settings.storeRules = .init(maxBytes: 200_000, never: ["application/*"])
        }.run { cache in
            for name in ["long.mp4", "list.m3u8", "short.mp4"] {
                let read = try await cache.body(of: name)
                #expect(read.bytes.count == (name == "long.mp4" ? 300_000 : 1000))
                #expect(read.outcome.requestClass == (name == "short.mp4" ? .miss : .bypass))
            }
            let kept = try await cache.assets.page(AssetQuery()).items.map(\.record.key)

            #expect(kept == ["/o/media/short.mp4"])
        }
    }

    @Test("Minimum quotas that together exceed the low watermark are rejected")
    func whatIsGuaranteedToAllTogetherMustFitIn() async throws {
        let bench = try Bench()
        try await cache(bench) { _ in }.run { cache in
            func refusal(_ change: () async throws -> Void) async -> String? {
                do { try await change() } catch let error as CacheError {
                    guard case .invalidField(let field) = error.code else { return "\(error)" }
                    return field
                } catch { return "\(error)" }
                return nil
            }
            func set(_ name: String, minBytes: Int64) async throws {
                var (origin, _) = try cache.configuration.origin(name)
                origin.settings.quota.minBytes = minBytes
                _ = try await cache.configuration.setOrigin(origin)
            }
            func set(_ policy: PolicySettings) async throws {
                _ = try await cache.configuration.setPolicy(policy)
            }
            var policy = PolicySettings(capacityBytes: 100 << 20, lowWatermark: 0.8, minFreeDiskBytes: 0)
            try await set(policy)
            try await set("media", minBytes: 50 << 20)

            #expect(await refusal { try await set("other", minBytes: 31 << 20) } == "quota.minBytes")
            #expect(await refusal { try await set("other", minBytes: 30 << 20) } == nil)
            policy.tagQuotas = ["kids": Quota(minBytes: 80 << 20), "films": Quota(minBytes: 80 << 20)]
            #expect(await refusal { try await set(policy) } == nil, "minimum quotas of tags may overlap")
            policy.tagQuotas["kids"] = Quota(minBytes: 81 << 20)
            #expect(await refusal { try await set(policy) } == "tagQuotas")
            policy = cache.configuration.policy.settings
            policy.capacityBytes = 99 << 20
            #expect(await refusal { try await set(policy) } == "capacityBytes")
            #expect(cache.configuration.policy.settings.capacityBytes == 100 << 20)
        }
    }
}
