import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct ProbeTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("A probe costs one HEAD, and the next probe costs none")
    func aProbeCostsAHeadAndTheNextOneNothing() async throws {
        try await bench.cache().run { cache in
            let asked = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)
            let known = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)

            #expect(asked.method == .head && known.method == .cached)
            #expect(asked.generation.length == bench.asset.size)
            #expect(asked.generation.acceptsRanges == true)
            #expect(known.generation.validators.entityTag?.description == "\"v1\"")
            #expect(known.uti == "public.mpeg-4")
            #expect(bench.upstream.requests.map(\.method) == ["HEAD"])
        }
    }

    @Test("An upstream that rejects HEAD is asked for its first byte")
    func anUpstreamThatRefusesHeadIsAskedForItsFirstByte() async throws {
        bench.upstream.serve("/a.mp4") { [asset = bench.asset] request in
            request.method == "HEAD" ? .response(status: 405) : .asset(asset)
        }
        try await bench.cache().run { cache in
            let report = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)

            #expect(report.method == .get && report.upstreamStatus == 206)
            #expect(report.generation.length == bench.asset.size)
            #expect(bench.upstream.requests.last?.range == 0..<1)
        }
    }

    /// The signature of the first URL has expired meanwhile, but the asset is still fresh.
    @Test("A new signed URL under a known key is used from then on")
    func aNewSignedURLUnderAKnownKeyIsUsedFromThenOn() async throws {
        let (first, second) = (bench.upstream.url("/a.mp4?s=1"), bench.upstream.url("/a.mp4?s=2"))
        var asset = bench.asset
        asset.cacheControl = "max-age=31536000"
        bench.upstream.serve("/a.mp4", asset)
        try await bench.cache().run { [asset] cache in
            _ = try await cache.prober.probe(.url(first, key: "k"), timeout: .seconds(5), refresh: false)
            bench.upstream.serve("/a.mp4") { request in
                request.target.hasSuffix("s=2") ? .asset(asset) : .response(status: 404)
            }
            let known = try await cache.prober.probe(.url(second, key: "k"), timeout: .seconds(5), refresh: false)
            let read = try await cache.reader.read(.known(known.assetID), request: ContentRequest())
            read.finish(.sent)

            #expect(known.method == .cached)
            #expect(read.plan.status == 200)
        }
    }

    @Test("A refresh keeps range support proven by an earlier response")
    func aRefreshKeepsWhatARangeHasProven() async throws {
        bench.upstream.serve("/a.mp4") { [asset = bench.asset] request in
            var silent = asset
            silent.acceptsRanges = request.method != "HEAD"
            return .asset(silent)
        }
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<5000)
            let report = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)

            #expect(report.method == .head && report.generation.acceptsRanges == true)
        }
    }

    @Test("A refresh with the same validator keeps every extent")
    func aRefreshThatFindsTheSameKeepsEveryExtent() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<5000)
            let report = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)
            let read = try await cache.body(of: "a.mp4", 0..<5000)

            #expect(report.cachedBytes == 5000 && report.generation.number == 1)
            #expect(read.outcome.requestClass == .hit)
        }
    }

    @Test("A refresh with another validator opens the next generation")
    func aRefreshThatFindsAnotherValidatorOpensTheNextGeneration() async throws {
        let next = LoopbackAsset(size: 2 << 20, seed: 9, etag: "\"v2\"")
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<5000)
            bench.upstream.serve("/a.mp4", next)
            let report = try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: true)
            let read = try await cache.body(of: "a.mp4", 0..<5000)

            #expect(report.generation.number == 2 && report.cachedBytes == 0)
            #expect(read.bytes.isSame(as: next.bytes(0..<5000)))
        }
        try await bench.cache().run { cache in
            let summary = try await cache.assets.asset(try await bench.id(in: cache))

            #expect(summary.record.generation.number == 2)
            #expect(summary.cachedBytes == 5000)
        }
    }

    @Test("A probe beyond its timeout fails with a timeout")
    func aProbeThatTakesTooLongSaysThatItTimedOut() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        bench.upstream.failNext("/a.mp4", .stallBeforeHead(until: latch))
        bench.upstream.failNext("/a.mp4", .stallBeforeHead(until: latch))
        try await bench.cache().run { cache in
            let failure = await #expect(throws: ProbeFailure.self) {
                try await cache.prober.probe(Bench.media, timeout: .milliseconds(100), refresh: false)
            }

            #expect(failure?.error.code == .upstreamTimedOut(.total))
        }
    }

    @Test("A probe states which origin timeout expired")
    func aProbeTellsWhichTimeOutOfTheOriginRanOut() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        for _ in 0..<2 { bench.upstream.failNext("/a.mp4", .stallBeforeHead(until: latch)) }
        try await bench.cache { $0.timeouts.firstByte = .milliseconds(60) }.run { cache in
            let failure = await #expect(throws: ProbeFailure.self) {
                try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)
            }

            #expect(failure?.error.code == .upstreamTimedOut(.firstByte))
        }
    }

    @Test("A failed probe states the upstream status", arguments: [404, 403, 500])
    func aProbeTellsTheUpstreamsStatus(_ status: Int) async throws {
        bench.upstream.serve("/a.mp4") { _ in .response(status: status) }
        try await bench.cache().run { cache in
            let failure = await #expect(throws: ProbeFailure.self) {
                try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)
            }

            #expect(failure?.error.code == .upstreamRefused(status: status))
        }
    }

    @Test("A probe of an unreachable upstream fails as unreachable")
    func aProbeOfAnUpstreamThatIsGoneSaysThatItCannotBeReached() async throws {
        // No process listens on port 1, and the kernel assigns this port to no other test.
        try await bench.cache { $0.baseURL = "http://127.0.0.1:1" }.run { cache in
            let failure = await #expect(throws: ProbeFailure.self) {
                try await cache.prober.probe(Bench.media, timeout: .seconds(5), refresh: false)
            }

            #expect(failure?.error.code == .upstreamUnreachable())
        }
    }
}
