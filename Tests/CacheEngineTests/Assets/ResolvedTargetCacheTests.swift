import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// The cache of resolved targets.
@Suite(.timeLimit(.minutes(20))) struct ResolvedTargetCacheTests {
    @Test("Paths with equal characters and different bytes have different targets")
    func equivalentPathsAreNotTheSame() async throws {
        let bench = try Bench()
        defer { bench.upstream.stop() }
        try await bench.cache().run { (cache) async throws in
            let (resolver, targets) = (cache.resolver, ResolvedTargetCache())
            let paths = ["/\u{e9}.mp4", "/e\u{301}.mp4", "/a.mp4", "/a.mp4"]
            var ids: [AssetID] = []
            for path in paths {
                let reference = AssetReference.mounted(origin: "media", path: path, key: nil)
                ids.append(try await targets.target(of: reference, resolvedBy: resolver).id)
            }
            #expect(Set(ids).count == 3 && ids[2] == ids[3])
            let kept = AssetReference.mounted(origin: "media", path: "/a.mp4", key: nil)
            #expect(targets.target(of: kept, changes: resolver.origins.changes)?.id == ids[2])
        }
    }
}
