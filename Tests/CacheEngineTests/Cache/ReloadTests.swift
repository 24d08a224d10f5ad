import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Reloads of the configuration: origins, policy, and rules for absolute URLs.
@Suite(.timeLimit(.minutes(5))) struct ReloadTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    /// Applies the settings in force with a change.
    private func reload(_ cache: AssetCache, _ change: (inout AssetCache.Settings) -> Void) async throws {
        var settings = cache.configuration.live.current.settings
        change(&settings)
        try await cache.configuration.prepareReload(to: settings)()
    }

    /// Whether the configuration names the origin.
    private func isConfigured(_ name: String, in cache: AssetCache) throws -> Bool {
        cache.configuration.report(on: try cache.configuration.origin(name).origin).isConfigured
    }

    private func origin(_ name: String, retries: Int = 3) -> Origin {
        var origin = TestCache.origin(bench.upstream, name: name)
        origin.settings.retries = retries
        return origin
    }

    @Test("A new definition mounts an origin, a changed one replaces it, and a removed one unmounts it")
    func definitionsMountReplaceAndUnmount() async throws {
        try await bench.cache().run { cache in
            try await reload(cache) { $0.origins.append(origin("more", retries: 1)) }
            #expect(try cache.configuration.origin("more").origin.settings.retries == 1)
            #expect(try isConfigured("more", in: cache))
            let first = try cache.configuration.origin("more").revision
            #expect(try await cache.body(of: "a.mp4", 0..<10, origin: "more").bytes == bench.asset.bytes(0..<10))

            try await reload(cache) { $0.origins[1].settings.retries = 2 }
            #expect(try cache.configuration.origin("more").origin.settings.retries == 2)
            #expect(try cache.configuration.origin("more").revision > first)

            try await reload(cache) { $0.origins.removeLast() }
            #expect(throws: CacheError.self) { try cache.configuration.origin("more") }
            let error = await #expect(throws: CacheError.self) {
                try await cache.body(of: "a.mp4", 0..<10, origin: "more")
            }
            #expect(error?.code == .notFound)
            let kept = try await cache.assets.page(AssetQuery(origin: "more", limit: 10)).items
            #expect(kept.count == 1, "The cached asset stays.")
        }
    }

    @Test("A reload outlasts a restart")
    func aReloadOutlastsARestart() async throws {
        try await bench.cache().run { cache in
            try await reload(cache) { $0.origins = [origin("new")] }
        }
        try await bench.cache().run { cache in
            #expect(cache.configuration.mountedOrigins().map(\.origin.name) == ["media", "new"])
            let isNamed = try isConfigured("new", in: cache)
            #expect(!isNamed)
        }
    }

    @Test("A reload with an unchanged definition keeps changes over the API")
    func anUnchangedDefinitionKeepsChangesOverTheAPI() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.configuration.setOrigin(origin("media", retries: 9))
            _ = try await cache.configuration.setOrigin(origin("own", retries: 8))
            try await reload(cache) { $0.pricePerGigabyte = 1 }
            #expect(try cache.configuration.origin("media").origin.settings.retries == 9)
            #expect(try isConfigured("media", in: cache))

            try await reload(cache) { $0.origins[0].settings.retries = 5 }
            #expect(try cache.configuration.origin("media").origin.settings.retries == 5)

            try await cache.configuration.deleteOrigin("media")
            try await reload(cache) { $0.pricePerGigabyte = 2 }
            #expect(throws: CacheError.self) { try cache.configuration.origin("media") }

            try await reload(cache) { $0.origins = [] }
            #expect(try cache.configuration.origin("own").origin.settings.retries == 8)
            let isNamed = try isConfigured("own", in: cache)
            #expect(!isNamed)
        }
    }

    @Test("An invalid origin changes nothing, not even the others")
    func anInvalidOriginChangesNothing() async throws {
        try await bench.cache().run { cache in
            let before = cache.configuration.mountedOrigins().map(\.revision)
            var broken = origin("broken")
            broken.settings.baseURL = "http://user@a.example"
            let error = await #expect(throws: CacheError.self) {
                try await reload(cache) { settings in
                    settings.origins = [origin("other"), broken]
                    settings.pricePerGigabyte = 3
                }
            }
            #expect(error?.code == .invalidField("origins.broken.baseURL"))

            var named = origin("named")
            named.settings.credentialsFile = "c.txt"
            let missing = await #expect(throws: CacheError.self) { try await reload(cache) { $0.origins = [named] } }
            #expect(missing?.code == .invalidField("origins.named.credentialsFile"))

            #expect(cache.configuration.mountedOrigins().map(\.origin.name) == ["media"])
            #expect(cache.configuration.mountedOrigins().map(\.revision) == before)
            #expect(cache.configuration.live.current.settings.pricePerGigabyte == nil)
            let stored = try await cache.context.store.catalog.origins()
            #expect(stored.map(\.value.name) == ["media"])
        }
    }

    @Test("The policy of the configuration is replaced, with another revision, until the API sets one")
    func thePolicyIsReplacedUntilTheAPISetsOne() async throws {
        try await bench.cache().run { cache in
            let first = cache.configuration.policy.revision
            try await reload(cache) { settings in
                settings.policy.capacityBytes = 1 << 30
                settings.policy.tagQuotas["promo"] = Quota(maxBytes: 9)
            }
            let policy = cache.configuration.policy
            #expect(policy.settings.capacityBytes == 1 << 30 && policy.revision != first && policy.isConfigured)
            #expect(cache.context.space.with { $0.settings.capacityBytes } == 1 << 30)
            #expect(cache.context.space.with { $0.quotaStandings.map(\.owner) } == [.tag("promo")])

            var own = policy.settings
            own.capacityBytes = 2 << 30
            _ = try await cache.configuration.setPolicy(own)
            try await reload(cache) { $0.policy.capacityBytes = 3 << 30 }
            #expect(cache.configuration.policy.settings.capacityBytes == 2 << 30)
        }
    }

    @Test("Guaranteed bytes that do not fit in the capacity are refused")
    func guaranteedBytesThatDoNotFitAreRefused() async throws {
        try await bench.cache().run { cache in
            var greedy = origin("greedy")
            greedy.settings.quota.minBytes = 1 << 30
            let error = await #expect(throws: CacheError.self) {
                try await reload(cache) { settings in
                    settings.policy.capacityBytes = 1 << 30
                    settings.origins.append(greedy)
                }
            }
            #expect(error?.code == .invalidField("policy.capacity"))
            #expect(cache.configuration.mountedOrigins().count == 1)
        }
    }

    @Test("Rules for absolute URLs and limits apply to the next read")
    func rulesForAbsoluteURLsApplyToTheNextRead() async throws {
        try await bench.cache().run { cache in
            func read() async throws -> ContentRead {
                try await cache.reader.read(
                    .url(bench.upstream.url("/a.mp4"), key: nil), request: ContentRequest())
            }
            try await read().abandon()
            try await reload(cache) { $0.allowedHosts = HostPatterns(["a.example"]) }
            let refusal = await #expect(throws: ReadFailure.self) { try await read() }
            #expect(refusal?.error.code == .upstreamForbidden)

            try await reload(cache) { settings in
                settings.allowedHosts = HostPatterns(["127.0.0.1:*"])
                settings.absolute.allowPrivateAddresses = true
                settings.pricePerGigabyte = 0.5
            }
            try await read().abandon()
            #expect(try await cache.statistics.snapshot().pricePerGigabyte == 0.5)
        }
    }

    @Test("A read in progress ends although its origin is unmounted")
    func aReadInProgressEndsAlthoughItsOriginIsUnmounted() async throws {
        try await bench.withStalledRead { cache, read in
            try await reload(cache) { $0.origins = [] }
            read.resume()
            #expect(try await read.task.value == bench.asset.bytes(StalledRead.range))
        }
    }
}
