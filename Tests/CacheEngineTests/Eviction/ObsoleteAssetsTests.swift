import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Assets that were stored for single values of CMCD.
@Suite(.timeLimit(.minutes(5))) struct ObsoleteAssetsTests {
    private static let queries = ["?CMCD=br%3D1", "?CMCD=br%3D2&v=7", "?v=7", "?sid=1", ""]

    private func keys(in cache: AssetCache) async throws -> [String] {
        try await cache.assets.page(AssetQuery(sort: .key, isDescending: false)).items.map(\.record.key)
    }

    /// A fixture with a store in which each query has an asset of its own.
    private func stored() async throws -> Bench {
        let bench = try Bench()
        for query in Self.queries { bench.upstream.serve("/a.mp4" + query, bench.asset) }
        try await bench.cache { $0.cmcd = .key }.run { cache in
            for query in Self.queries { _ = try await cache.body(of: "a.mp4" + query) }
            #expect(try await keys(in: cache).count == 5)
        }
        return bench
    }

    @Test("Assets with CMCD in their key are purged after the start", arguments: [OriginSettings.CMCD.strip, .forward])
    func purges(_ cmcd: OriginSettings.CMCD) async throws {
        let bench = try await stored()
        try await bench.cache { $0.cmcd = cmcd }.run { cache in
            let isPurged = try await eventually { try await keys(in: cache).count == 3 }
            #expect(isPurged)
            let fetched = bench.upstream.requests.count
            for query in ["", "?CMCD=br%3D3", "?v=7", "?CMCD=x&v=7", "?sid=1&%43MCD"] {
                _ = try await cache.body(of: "a.mp4" + query)
            }
            #expect(try await keys(in: cache).count == 3)
            #expect(bench.upstream.requests.count == fetched)
        }
    }

    @Test("Assets of an origin whose keys contain CMCD stay")
    func keeps() async throws {
        let bench = try await stored()
        try await bench.cache { $0.cmcd = .key }.run { cache in
            let clock = ContinuousClock()
            try await ObsoleteAssets(resolver: cache.resolver, evictor: cache.evictor, clock: clock).renew()
            #expect(try await keys(in: cache).count == 5)
        }
    }

    @Test(
        "A changed cmcd of an origin purges the assets with CMCD in their key",
        arguments: [OriginSettings.CMCD.strip, .forward])
    func purgesAtChange(_ cmcd: OriginSettings.CMCD) async throws {
        let bench = try await stored()
        try await bench.cache { $0.cmcd = .key }.run { cache in
            var origin = try cache.resolver.origins.mounted("media")
            origin.settings.retries += 1
            _ = try await cache.configuration.setOrigin(origin)
            #expect(try await keys(in: cache).count == 5)
            origin.settings.cmcd = cmcd
            _ = try await cache.configuration.setOrigin(origin)

            #expect(try await eventually { try await keys(in: cache).count == 3 })
        }
    }
}
