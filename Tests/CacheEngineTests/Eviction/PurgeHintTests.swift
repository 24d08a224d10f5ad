import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Hints for purges that select nothing.
@Suite struct PurgeHintTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    @Test(
        "Other spellings of a prefix, the most probable first",
        arguments: [
            ("o/media/a", "/o/media/a"), ("/media/a", "/o/media/a"), ("media/a", "/o/media/a"),
            ("/o/media//a", "/o/media/a"), ("/o/media/a*", "/o/media/a"), ("/o/media/a b", "/o/media/a%20b"),
            ("/o/media/a%2fb", "/o/media/a%2Fb"), ("/o/media/a%2520b", "/o/media/a%20b"), ("/o/medai/a", "/o/media/a"),
            ("/o/Media/a", "/o/media/a"), ("http://cache.example:8080/o/media/a", "/o/media/a"),
            ("100%", "/o/media/100%25"),
        ])
    func spellings(prefix: String, expected: String) {
        let found = PurgeHint.spellings(of: prefix, origin: nil, ["media"])
        #expect(found.contains(expected) && !found.contains(prefix), "\(found)")
    }

    private func hint(_ json: JSON, by owner: TokenOwner? = nil, in cache: AssetCache) async throws -> String? {
        guard case .object(let members) = json else { return nil }
        let request = try PurgeRequest(.object(members + [JSON.Member("dryRun", .bool(true))]))
        return try await cache.purge(request, by: owner).report.hint
    }

    @Test("The hint names a prefix with assets, the condition that fails, or a similar base URL")
    func theHintNamesTheReason() async throws {
        for path in ["/films/one.mp4", "/secret/a.mp4"] { upstream.serve(path, LoopbackAsset(size: 10)) }
        let cache = try TestCache(directory: directory.path("data"), origins: [TestCache.origin(upstream)])
        try await cache.run { cache in
            for path in ["films/one.mp4", "secret/a.mp4"] { _ = try await cache.body(of: path) }
            func expect(_ json: JSON, _ end: String?, by owner: TokenOwner? = nil) async throws {
                let found = try await hint(json, by: owner, in: cache)
                #expect(end.map { found?.hasSuffix($0) ?? false } ?? (found == nil), "\(json): \(found ?? "none")")
            }
            try await expect(["prefix": "/o/media/films"], nil)
            try await expect(["prefix": "films/"], "Keys begin with /o/media/films/.")
            try await expect(["prefix": "/o/media/Films/ONE"], "Keys begin with /o/media/films/one.")
            try await expect(["prefix": "/o/media/films/two"], "with assets is /o/media/films/.")
            try await expect(["patterns": ["/o/media/film/**"]], "with assets is /o/media/.")
            try await expect(["origin": "medai"], "The name media is similar.")
            try await expect(["prefix": "/o/media/films", "tag": "x"], "none of them meets all conditions.")
            try await expect(["urls": [.string(upstream.url("/Films/one.mp4"))]], "begin with /o/media/films/one.mp4.")
            let other = "https" + upstream.url("/films/one.mp4").dropFirst(4)
            try await expect(["urls": [.string(other)]], "is that of media: \(upstream.url("/")).")
            let owner = TokenOwner(id: "t", limits: ContentLimits(prefixes: ["/o/media/films/"]))
            try await expect(["prefix": "/o/media/films/ONE"], "begin with /o/media/films/one.", by: owner)
            let outside = "No key inside the limits of the token begins with /o/media/Secret/."
            try await expect(["prefix": "/o/media/Secret/"], outside, by: owner)
        }
    }
}
