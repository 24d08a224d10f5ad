import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Temporary beliefs about the handling of ranges by an upstream.
@Suite struct ObservationTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test("After ignored ranges are forgotten, the missing part is requested as a range")
    func ignoredRanges() async throws {
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: bench.asset.size, acceptsRanges: false))
        bench.upstream.failNext("/a.mp4", .cut(after: 100_000))
        try await bench.cache { $0.retries = 0 }.run { cache in
            let mounted = try cache.resolver.origins.mounted("media")
            _ = try? await cache.body(of: "a.mp4", 1_000_000..<1_000_100)
            let observed = cache.configuration.observations(of: mounted).items
            bench.upstream.serve("/a.mp4", bench.asset)
            try cache.configuration.forgetObservations(of: "media")
            let later = try await cache.body(of: "a.mp4", 2_000_000..<2_000_100).bytes

            #expect(observed.map(\.kind) == [.rangesIgnored])
            #expect(later == bench.asset.bytes(2_000_000..<2_000_100))
            #expect(bench.upstream.requests.last?.range == 2_000_000..<2_000_100)
            #expect(cache.configuration.observations(of: mounted).items.isEmpty)
        }
    }

    @Test("A new base URL ends the observations of the origin")
    func newBaseURL() async throws {
        try await bench.cache().run { cache in
            let mounted = try cache.resolver.origins.mounted("media")
            let target = try await cache.resolver.resolve(Bench.media)
            cache.context.health.observed(.rangesRefused, of: target, evidence: "Status 403.")
            var moved = mounted
            moved.settings.baseURL += "/other"
            let before = cache.configuration.observations(of: mounted).items
            _ = try await cache.configuration.setOrigin(moved)

            #expect(before.count == 1 && cache.configuration.observations(of: moved).items.isEmpty)
        }
    }
}
