import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Reported circuit states, compared with the actual reads.
@Suite struct CircuitShowingTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func explain(_ cache: AssetCache, _ range: String) async throws -> Explanation {
        try await cache.reader.explain(Bench.media, request: ContentRequest(headers: ["Range": "bytes=" + range]))
    }

    private func circuit(_ cache: AssetCache) async throws -> CircuitFigures {
        try #require(try await cache.statistics.snapshot().circuits["media"]?.first)
    }

    @Test("Explain predicts an error if the circuit is open")
    func whatCannotBeFetchedIsSaidToFail() async throws {
        try await bench.breakingCache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            await bench.exhaust(cache)
            let hit = try await explain(cache, "0-999")
            let cut = try await explain(cache, "500-1499")
            let missed = try await explain(cache, "1000-1999")
            let before = bench.upstream.requests.count

            #expect(hit.answer.requestClass == .hit && hit.source.url == nil)
            #expect(cut.answer.status == 206 && cut.cached.runs == [500..<1000] && cut.forecast == FillForecast())
            #expect(missed.answer.code?.isLeftAlone == true && missed.answer.requestClass == .error)
            #expect(
                missed.source.whyNot?.message.contains(
                    "failed 3 times in a row, the last time with 503; no request is sent to it") == true)
            #expect(try await cache.body(of: "a.mp4", 0..<1000).outcome.requestClass == .hit)
            await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 500..<1500) }
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 1000..<2000) }
            #expect(error?.code.isLeftAlone == true)
            #expect(bench.upstream.requests.count == before)
        }
    }

    @Test("Explain predicts an error for an unknown asset if the circuit is open")
    func anAssetNobodyKnowsIsSaidToFail() async throws {
        try await bench.breakingCache().run { cache in
            await bench.exhaust(cache)
            let said = try await explain(cache, "0-999")

            #expect(said.freshness.use == .unknown && said.answer.code?.isLeftAlone == true)
            #expect(said.forecast == FillForecast())
        }
    }

    @Test(
        "With an open circuit stale bytes are served only if stale-if-error allows it",
        arguments: [Duration.zero, .seconds(3600)])
    func whatIsStaleStandsInOnlyWhereItMay(_ staleIfError: Duration) async throws {
        let test = try bench.breakingCache {
            $0.freshness = .ttl(.seconds(60))
            $0.staleIfError = staleIfError
        }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            await bench.exhaust(cache)
            test.wallClock.advance(by: .seconds(120))
            let said = try await explain(cache, "0-999")
            let read = try? await cache.body(of: "a.mp4", 0..<1000)

            #expect(said.answer.requestClass == (staleIfError == .zero ? .error : .stale))
            #expect(said.answer.code?.isLeftAlone == (staleIfError == .zero ? true : nil))
            #expect(said.forecast == FillForecast())
            #expect(read?.outcome.requestClass == (staleIfError == .zero ? nil : .stale))
        }
    }

    @Test("Explain lists the mirrors if every circuit is open")
    func theMirrorThatWouldBeAskedIsNamed() async throws {
        let mirror = try LoopbackUpstream()
        mirror.serve("/a.mp4") { _ in .response(status: 503) }
        try await bench.breakingCache(pause: .seconds(3600)) { $0.mirrors = [mirror.url("")] }.run { cache in
            let well = try await explain(cache, "0-999")
            // The first three reads open the circuit of the upstream. The next three reads request the mirror.
            await bench.exhaust(cache)
            await bench.exhaust(cache)
            let none = try await explain(cache, "0-999")
            let figures = try #require(try await cache.statistics.snapshot().circuits["media"])

            #expect(well.source.url == bench.upstream.url("/a.mp4") && well.source.whyNot == nil)
            #expect(none.source.url == nil && none.source.mirrors == [mirror.url("")])
            #expect(figures.map(\.address) == [bench.upstream.url(""), mirror.url("")])
            #expect(figures.allSatisfy { $0.state == .open && ($0.pause ?? .zero) > .seconds(20) })
        }
    }

    @Test("Explain names the mirror while the circuit of the origin is open")
    func aMirrorTakesOver() async throws {
        let mirror = try LoopbackUpstream()
        mirror.serve("/a.mp4", bench.asset)
        let test = try bench.breakingCache {
            $0.mirrors = [mirror.url("")]
            $0.retries = 1
        }
        try await test.run { cache in
            bench.upstream.serve("/a.mp4") { _ in .response(status: 503) }
            for start in [Int64(0), 1000, 2000] { _ = try await cache.body(of: "a.mp4", start..<(start + 1000)) }
            let said = try await explain(cache, "3000-3999")
            let before = bench.upstream.requests.count
            _ = try await cache.body(of: "a.mp4", 3000..<4000)

            #expect(said.source.url == mirror.url("/a.mp4"))
            #expect(said.source.whyNot?.message.contains("no request is sent to it") == true)
            #expect(said.forecast.requests == [.window(3000..<4000)] && said.answer.requestClass == .miss)
            #expect(bench.upstream.requests.count == before)
        }
    }

    @Test("Explain takes no half-open probe permit")
    func askingWhatWouldBeTakesNoLeave() async throws {
        try await bench.breakingCache(pause: .milliseconds(20)).run { cache in
            await bench.exhaust(cache)
            let isOver = try await eventually { try await explain(cache, "0-999").source.url != nil }
            let again = try await explain(cache, "0-999")
            let circuit = try await circuit(cache)

            #expect(isOver && again.source.url != nil && again.forecast.requests == [.opening(.closed(0..<1000))])
            #expect(circuit.state == .open && circuit.pause == .zero)
        }
    }

    @Test("During a half-open probe no other request is sent")
    func whileAProbeIsUnderWayNobodyElseIsAsked() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        try await bench.breakingCache(pause: .milliseconds(20)).run { cache in
            await bench.exhaust(cache)
            bench.upstream.serve("/a.mp4", bench.asset)
            bench.upstream.failNext("/a.mp4", .stall(after: 0, until: latch))
            let isOver = try await eventually { try await explain(cache, "0-999").source.url != nil }
            async let probe = cache.body(of: "a.mp4", 0..<1000)
            await latch.reached()
            let other = try await cache.reader.explain(
                .mounted(origin: "media", path: "b.mp4", key: nil), request: ContentRequest())
            let halfOpen = try await circuit(cache)
            latch.release()
            _ = try await probe
            let closed = try await circuit(cache)

            #expect(isOver)
            #expect(halfOpen.state == .halfOpen && halfOpen.pause == nil)
            #expect(other.source.url == nil && other.source.whyNot?.message.contains("probe request") == true)
            #expect(closed.state == .closed && closed.failuresInARow == 0 && closed.opensTotal == 1)
        }
    }

    @Test("Origins without a circuit breaker report no circuit")
    func originsWithoutABreakerHaveNone() async throws {
        try await bench.breakingCache { $0.circuitBreaker = nil }.run { cache in
            await bench.exhaust(cache)
            let stats = try await cache.statistics.snapshot()

            #expect(stats.circuits.isEmpty && stats.origins.map(\.name) == ["media"])
            #expect(try await explain(cache, "0-999").source.whyNot == nil)
        }
    }
}
