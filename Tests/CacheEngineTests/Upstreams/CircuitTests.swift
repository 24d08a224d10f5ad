import CacheCore
import CacheTestKit
import Logging
import Testing

@testable import CacheEngine

@Suite struct CircuitTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func circuit(_ cache: AssetCache) throws -> CircuitFigures {
        try #require(cache.context.upstreams.health.circuits(of: cache.resolver.origins.mounted("media")).first)
    }

    @Test("After the configured failures no request is sent")
    func nothingIsAskedAfterSoManyFailures() async throws {
        try await bench.breakingCache().run { cache in
            await bench.exhaust(cache)
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<2000) }
            await #expect(throws: ProbeFailure.self) {
                try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)
            }
            let circuit = try circuit(cache)

            #expect(error?.code.isLeftAlone == true)
            #expect(
                error?.message.contains(
                    "failed 3 times in a row, the last time with 503; no request is sent to it for another") == true)
            #expect(bench.upstream.requests.count == 3)
            #expect(circuit.state == .open && circuit.failuresInARow == 3 && circuit.opensTotal == 1)
            #expect(try await eventually { try await cache.isAtRest() })
        }
    }

    @Test("With an open circuit cached bytes are still served")
    func whatIsOnDiskIsServedAllTheSame() async throws {
        let test = try bench.breakingCache {
            $0.freshness = .ttl(.seconds(60))
            $0.staleIfError = .seconds(3600)
        }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            await bench.exhaust(cache)
            let fresh = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(120))
            let stale = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(fresh.bytes == bench.asset.bytes(0..<1000) && fresh.outcome.requestClass == .hit)
            #expect(stale.bytes == fresh.bytes && stale.outcome.requestClass == .stale)
            #expect(bench.upstream.requests.count == 4)
        }
    }

    @Test("A successful probe closes the circuit")
    func aProbeThatSucceedsClosesIt() async throws {
        try await bench.breakingCache(pause: .milliseconds(50)).run { cache in
            await bench.exhaust(cache)
            bench.upstream.serve("/a.mp4", bench.asset)
            let isBack = try await eventually { (try? await cache.body(of: "a.mp4", 0..<1000)) != nil }
            let circuit = try circuit(cache)

            #expect(isBack)
            #expect(circuit.state == .closed && circuit.failuresInARow == 0 && circuit.opensTotal == 1)
            #expect(bench.upstream.requests.count == 4)
        }
    }

    @Test("Items wait while the circuit is open, and run when it is closed")
    func itemsWait() async throws {
        bench.upstream.serve("/b.mp4", LoopbackAsset(size: 1000))
        let test = try bench.breakingCache()
        try await test.run { cache in
            await bench.exhaust(cache)
            let job = try await cache.jobs.submit(.of("b.mp4"))
            let item = try await cache.waitingItem(of: job)
            #expect(
                item.wait?.hold == ItemWait.Hold(.circuit, of: "media") && item.error?.code == "upstreamUnreachable")
            #expect(bench.upstream.requests.count == 3)

            cache.context.upstreams.health.closeCircuits(of: "media")
            test.wallClock.advance(by: .seconds(1))
            #expect(try await cache.finished(job).record.state == .succeeded)
        }
    }

    @Test("Final upstream statuses do not open the circuit", arguments: [403, 404, 429])
    func refusalsThatAreAnswersDoNotOpenIt(_ status: Int) async throws {
        bench.upstream.serve("/a.mp4") { _ in .response(status: status) }
        try await bench.breakingCache().run { cache in
            for _ in 0..<5 {
                await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<2000) }
            }
            let circuit = try circuit(cache)

            #expect(circuit.state == .closed)
            // A 403 may refer to the range, so the request is repeated once without a range.
            #expect(bench.upstream.requests.count == (status == 403 ? 10 : 5))
        }
    }

    @Test("A mirror is requested while the circuit of the origin is open")
    func aMirrorIsAskedWhileTheOriginIsLeftAlone() async throws {
        let mirror = try LoopbackUpstream()
        try await bench.breakingCache { $0.mirrors = [mirror.url("")] }.run { cache in
            await bench.exhaust(cache)
            mirror.serve("/a.mp4", bench.asset)
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(bench.upstream.requests.count == 3)
        }
    }

    @Test("The circuit breaker can be disabled")
    func itMayBeSwitchedOff() async throws {
        try await bench.breakingCache { $0.circuitBreaker = nil }.run { cache in
            await bench.exhaust(cache)
            await bench.exhaust(cache)

            #expect(bench.upstream.requests.count == 6)
        }
    }

    @Test("Each host of absolute URLs has its own circuit")
    func oneDeadHostOfAbsoluteURLsStandsForItselfAlone() throws {
        let health = health()
        let (dead, well) = (target("http://a.example:8080/x"), target("http://b.example/y"))
        for _ in 0..<10 {
            health.settle(
                try health.admit(dead), .broken(CacheError(.upstreamProtocol, "broken")),
                by: dead.settings.circuitBreaker)
        }

        #expect(throws: CacheError.self) { try health.admit(target("http://a.example:8080/z?q")) }
        #expect(try health.admit(well).base == "http://b.example")
        #expect(health.failingServers().map(\.address) == ["http://a.example:8080"])
    }

    @Test("The number of remembered hosts is limited")
    func noMoreHostsThanALimitAreRemembered() throws {
        let health = health(limit: 8)
        let dead = target("http://dead.example/")
        for _ in 0..<10 {
            health.settle(
                try health.admit(dead), .broken(CacheError(.upstreamProtocol, "broken")),
                by: dead.settings.circuitBreaker)
        }
        for number in 0..<100 { _ = try health.admit(target("http://host\(number).example/")) }

        #expect(health.look { $0.count } <= 8)
        #expect(throws: CacheError.self, "failing hosts must be remembered longest") { try health.admit(dead) }
    }

    private func health(limit: Int = 1024) -> OriginHealth {
        OriginHealth(uptime: { .seconds(1) }, random: SeededChance(), logger: Logger(label: "test"), limit: limit)
    }

    private func target(_ url: String) -> AssetTarget {
        AssetTarget(
            id: AssetID(naming: url), key: url, originName: Origin.absoluteName,
            settings: OriginSettings(baseURL: "http://127.0.0.1"), url: url, path: "/")
    }
}
