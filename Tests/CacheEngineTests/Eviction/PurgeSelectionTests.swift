import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Selection of the assets of a purge.
@Suite(.timeLimit(.minutes(5))) struct PurgeSelectionTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    /// A cache with three origins: `media` keys by `v` of the query, `plain` ignores the query, and `deep` has the base
    /// path `/d/`.
    private func cache() throws -> TestCache {
        var (media, plain, deep) = (TestCache.origin(upstream), TestCache.origin(upstream), TestCache.origin(upstream))
        media.settings.keyQuery = .include(["v"])
        plain.name = "plain"
        plain.settings.keyQuery = .none
        deep.name = "deep"
        deep.settings.baseURL += "/d/"
        return try TestCache(directory: directory.path, origins: [media, plain, deep])
    }

    private func selected(
        _ selection: AssetSelection = AssetSelection(), keys: [String]? = nil, urls: [String]? = nil,
        in cache: AssetCache
    ) async throws -> Set<String> {
        let report = try await cache.evictions.purge(selection, keys: keys, urls: urls, isSoft: false, isDryRun: true)
        #expect(report.assets == report.entries.count)
        return Set(report.entries.map(\.key))
    }

    private func key(_ reference: AssetReference, in cache: AssetCache) async throws -> String {
        try await cache.prober.probe(reference, timeout: .seconds(5), refresh: false).key
    }

    @Test("A URL selects the assets that a request for it reads")
    func aURLSelectsTheAssetsThatARequestForItReads() async throws {
        for path in ["/a", "/a?v=1", "/a?v=2", "/a?v=1&s=x", "/d/a", "/d/a?q=1"] {
            upstream.serve(path, LoopbackAsset(size: 10))
        }
        try await cache().run { cache in
            func media(_ path: String, _ origin: String = "media") -> AssetReference {
                .mounted(origin: origin, path: path, key: nil)
            }
            var keys: [String: String] = [:]
            for path in ["a", "a?v=1", "a?v=2"] { keys["media " + path] = try await key(media(path), in: cache) }
            keys["plain a"] = try await key(media("a", "plain"), in: cache)
            keys["deep a"] = try await key(media("a", "deep"), in: cache)
            keys["deep a?q=1"] = try await key(media("a?q=1", "deep"), in: cache)
            keys["url"] = try await key(.url(upstream.url("/a?v=1&s=x"), key: nil), in: cache)
            keys["named"] = try await key(.url(upstream.url("/a?v=2"), key: "mine"), in: cache)
            #expect(Set(keys.values).count == 8)

            func expect(_ url: String, _ names: [String]) async throws {
                let found = try await selected(urls: [upstream.url(url)], in: cache)
                #expect(found == Set(names.compactMap { keys[$0] }), "\(url)")
            }
            try await expect("/a", ["media a", "plain a"])
            try await expect("/a?v=1", ["media a?v=1", "plain a"])
            try await expect("/a?v=2&CMCD=x", ["media a?v=2", "plain a", "named"])
            try await expect("/a?s=x&v=1", ["media a?v=1", "plain a"])
            try await expect("/a?v=1&s=x", ["media a?v=1", "plain a", "url"])
            try await expect("/%61?v=2", ["media a?v=2", "plain a", "named"])
            try await expect("/d/a?q=1", ["deep a?q=1"])
            try await expect("/d/a", ["deep a"])
            try await expect("/b", [])
        }
    }

    @Test("A key selects its asset with all variants")
    func keysSelectTheirAssetsAndAllVariants() async throws {
        for path in ["/a", "/b"] {
            upstream.serve(path) { request in
                let isGerman = request.headers["Accept-Language"] == "de"
                return .asset(
                    LoopbackAsset(
                        size: isGerman ? 20 : 10, etag: isGerman ? "\"de\"" : "\"en\"",
                        headers: ["Vary": "Accept-Language"]))
            }
        }
        try await cache().run { cache in
            for (path, language) in [("a", "en"), ("a", "de"), ("b", "en"), ("b", "de")] {
                let read = try await cache.reader.read(
                    .media(path), request: ContentRequest(headers: ["Accept-Language": language]))
                while try await read.nextBytes() != nil {}
                read.finish(.sent)
            }
            let all = try await selected(AssetSelection(origin: "media"), in: cache)
            let ofA = all.filter { $0.hasPrefix("/o/media/a") }
            #expect(ofA.count >= 2)
            #expect(try await selected(keys: ["/o/media/a", "/o/media/x"], in: cache) == ofA)
            #expect(try await selected(urls: [upstream.url("/a")], in: cache) == ofA)
            let pattern = try #require(KeyPattern("/o/*/a"))
            #expect(try await selected(AssetSelection(patterns: [pattern]), in: cache) == ofA)
            #expect(try await selected(AssetSelection(tag: "none"), keys: ["/o/media/a"], in: cache).isEmpty)
            #expect(
                try await selected(keys: ["/o/media/a"], urls: [upstream.url("/b")], in: cache).isEmpty)
        }
    }

    @Test("A pattern matches the whole key")
    func patternsSelectByTheWholeKey() async throws {
        let paths = ["s1/seg-1.ts", "s1/seg-2.ts", "s1/x/seg-1.ts", "s2/seg-1.ts", "s2/seg-1.mp4"]
        for path in paths { upstream.serve("/" + path, LoopbackAsset(size: 10)) }
        try await cache().run { cache in
            for path in paths { _ = try await cache.body(of: path) }
            func expect(_ patterns: [String], _ places: [Int]) async throws {
                let found = try await selected(
                    AssetSelection(patterns: patterns.compactMap(KeyPattern.init)), in: cache)
                #expect(found == Set(places.map { "/o/media/" + paths[$0] }), "\(patterns)")
            }
            try await expect(["/o/media/s1/*"], [0, 1])
            try await expect(["/o/media/s1/**"], [0, 1, 2])
            try await expect(["/o/media/**/seg-1.ts"], [0, 2, 3])
            try await expect(["**.mp4", "**/x/*"], [2, 4])
            try await expect(["seg-1.ts"], [])
            let report = try await cache.evictions.purge(
                AssetSelection(patterns: [try #require(KeyPattern("/o/media/s1/**"))]), isSoft: false, isDryRun: false)
            #expect(report.assets == 3)
            try await expect(["**"], [3, 4])
        }
    }

    @Test("An eviction plan is committed exactly as planned")
    func thePlanOfAnEvictionIsCarriedOutAsItIs() async throws {
        for name in ["a", "b"] { upstream.serve("/" + name, LoopbackAsset(size: 1 << 20)) }
        try await cache().run { cache in
            _ = try await cache.body(of: "a")
            _ = try await cache.body(of: "b")
            let plan = try await cache.evictions.evict(.free(bytes: 1), isDryRun: true)
            let (id, entry) = (try #require(plan.planID), try #require(plan.entries.first))
            #expect(plan.entries.count == 1 && entry.ranges == [0..<1 << 20])
            #expect(try cache.evictions.plan(id).bytes == 1 << 20)

            let done = try await cache.evictions.commit(id)
            #expect(done.state == .done && done.freedBytes == 1 << 20 && done.assetsDone == 1)
            let left = try await cache.assets.page(AssetQuery()).items
            #expect(left.map(\.record.id) != [entry.assetID] && left.count == 1)
            #expect(try await cache.evictions.page(EvictionQuery(reason: .request)).items.map(\.bytes) == [1 << 20])
            await #expect(throws: CacheError.self) { try await cache.evictions.commit(id) }

            // An asset that was replaced after the dry run is skipped.
            let next = try await cache.evictions.evict(.free(bytes: 1), isDryRun: true)
            try await cache.assets.delete(left[0].record.id, isSoft: false)
            let changed = try await cache.evictions.commit(try #require(next.planID))
            #expect(changed.assetsChanged == 1 && changed.freedBytes == 0)
        }
    }
}
