import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Names of assets for upstream URLs of jobs and probes.
@Suite struct MountedURLTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    /// A cache with the origins `media`, `deep` with the base path `/d/`, and `backup` with the mirror `/m`.
    private func cache(allowing hosts: [String] = []) throws -> TestCache {
        var (deep, backup) = (TestCache.origin(upstream), TestCache.origin(upstream))
        (deep.name, backup.name) = ("deep", "backup")
        deep.settings.baseURL += "/d/"
        backup.settings.baseURL = "http://backup.example"
        backup.settings.mirrors = [upstream.url("/m")]
        return try TestCache(
            directory: directory.path("data"), origins: [TestCache.origin(upstream), deep, backup], allowedHosts: hosts)
    }

    private func mounted(_ origin: String, _ path: String, key: String? = nil) -> AssetReference {
        .mounted(origin: origin, path: path, key: key)
    }

    @Test("A URL names the asset of the mount with the longest base URL")
    func theLongestBaseURLNamesTheAsset() async throws {
        try await cache().run { cache in
            func name(_ url: String, key: String? = nil) -> AssetReference {
                cache.jobs.named([CreateJobRequest.Item(reference: .url(url, key: key))])[0].reference
            }
            #expect(name(upstream.url("/a.mp4")) == mounted("media", "a.mp4"))
            #expect(name(upstream.url("/d/a%20b.mp4?v=1")) == mounted("deep", "a%20b.mp4?v=1"))
            #expect(name(upstream.url("/%64/a.mp4"), key: "k") == mounted("deep", "a.mp4", key: "k"))
            #expect(name(upstream.url("/dx/a.mp4")) == mounted("media", "dx/a.mp4"))
            #expect(name(upstream.url("/m/a.mp4")) == mounted("backup", "a.mp4"))
            #expect(name("http://backup.example/x") == mounted("backup", "x"))
            for other in ["https://backup.example/x", "http://backup.example:81/x", "http://other.example/", "nothing"]
            {
                #expect(name(other) == .url(other, key: nil))
            }
            #expect(cache.prober.named([.url(upstream.url("/d/a"), key: nil)]) == [mounted("deep", "a")])
        }
    }

    @Test("A URL whose host is allowed stays an absolute URL, unless the item is a list")
    func aURLOfAnAllowedHostStays() async throws {
        try await cache(allowing: ["127.0.0.1:*"]).run { cache in
            let url = AssetReference.url(upstream.url("/a.mp4"), key: nil)
            let list = AssetReference.url(upstream.url("/d/"), key: nil)
            let named = cache.jobs.named([
                CreateJobRequest.Item(reference: url), CreateJobRequest.Item(reference: list, list: ListSelection()),
            ])
            #expect(named.map(\.reference) == [url, mounted("deep", "")])
            #expect(cache.prober.named([url]) == [url])
        }
    }

    @Test("The item of a job by URL fetches the asset of the mount, which a list by URL must have")
    func anItemByURLFetchesTheAssetOfTheMount() async throws {
        upstream.serve("/d/a.mp4", LoopbackAsset(size: 1000))
        try await cache().run { cache in
            var order = CreateJobRequest(items: [(.url(upstream.url("/d/a.mp4"), key: nil), [])])
            order.items = cache.jobs.named(order.items)
            let job = try await cache.finished(try await cache.jobs.submit(order))
            let item = try #require(try await cache.jobs.items(job.record.id).items.first)
            #expect(item.assetID == AssetID(naming: "/o/deep/a.mp4") && item.state == .succeeded)

            var list = CreateJobRequest(items: [(.url("http://other.example/", key: nil), [])])
            list.items[0].list = ListSelection()
            list.items = cache.jobs.named(list.items)
            await #expect { _ = try await cache.jobs.submit(list) } throws: { error in
                (error as? CacheError)?.code == .invalidField("items[0].url")
            }
        }
    }
}
