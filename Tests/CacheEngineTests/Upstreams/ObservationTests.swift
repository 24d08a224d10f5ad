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
            let observed = cache.configuration.report(on: mounted).observations
            bench.upstream.serve("/a.mp4", bench.asset)
            try cache.configuration.forgetObservations(of: "media")
            let later = try await cache.body(of: "a.mp4", 2_000_000..<2_000_100).bytes

            #expect(observed.map(\.kind) == [.rangesIgnored])
            #expect(later == bench.asset.bytes(2_000_000..<2_000_100))
            #expect(bench.upstream.requests.last?.range == 2_000_000..<2_000_100)
            #expect(cache.configuration.report(on: mounted).observations.isEmpty)
        }
    }

    @Test("A new base URL ends the observations of the origin")
    func newBaseURL() async throws {
        try await bench.cache().run { cache in
            let mounted = try cache.resolver.origins.mounted("media")
            let target = try await cache.resolver.resolve(Bench.media)
            cache.context.upstreams.health.observed(.rangesRefused, of: target, evidence: "Status 403.")
            var moved = mounted
            moved.settings.baseURL += "/other"
            let before = cache.configuration.report(on: mounted).observations
            _ = try await cache.configuration.setOrigin(moved)

            #expect(before.count == 1 && cache.configuration.report(on: moved).observations.isEmpty)
        }
    }

    @Test("Circuits and failures end with the base URL that they are about")
    func formerBaseURL() async throws {
        try await bench.cache { $0.circuitBreaker = .init(failures: 1) }.run { cache in
            let mounted = try cache.resolver.origins.mounted("media")
            let target = try await cache.resolver.resolve(Bench.media)
            let permit = try cache.context.upstreams.health.admit(target)
            let error = CacheError(.upstreamUnreachable(), "The connection was refused.")
            cache.context.upstreams.health.settle(permit, .broken(error), by: target.settings.circuitBreaker)
            let before = cache.configuration.report(on: mounted).addresses
            var moved = mounted
            moved.settings.baseURL += "/other"
            _ = try await cache.configuration.setOrigin(moved)
            _ = try await cache.configuration.setOrigin(mounted)
            let after = cache.configuration.report(on: mounted).addresses

            #expect(before.map(\.failuresInARow) == [1] && before.flatMap(\.failures.counts.values) == [1])
            #expect(after.map(\.failuresInARow) == [0] && after.flatMap(\.failures.counts.values) == [])
        }
    }
}
