import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine
import TestChance

/// Predictions of explain, compared with the actual reads.
@Suite struct ExplainTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func explain(
        _ cache: AssetCache, _ range: String? = nil, isHead: Bool = false, headers: HeaderList = [:]
    ) async throws -> Explanation {
        var headers = headers
        if let range { headers.set("Range", "bytes=" + range) }
        return try await cache.reader.explain(Bench.media, request: ContentRequest(isHead: isHead, headers: headers))
    }

    @Test("Explain of an unknown asset plans one opening and opens nothing")
    func anAssetNobodyKnowsIsOneOpeningAndStaysUnknown() async throws {
        try await bench.cache().run { cache in
            let bounded = try await explain(cache, "1000-1999")
            let whole = try await explain(cache)

            #expect(bounded.answer.requestClass == .miss && bounded.answer.status == nil && bounded.length == nil)
            #expect(bounded.freshness.use == .unknown)
            #expect(bounded.forecast.requests == [.opening(.closed(1000..<2000))])
            #expect(bounded.forecast.requestCount == 1 && bounded.forecast.requestedBytes == 1000)
            #expect(whole.forecast.requests == [.opening(.from(0))])
            #expect(whole.forecast.requestCount == nil && whole.forecast.requestedBytes == nil)
            #expect(bench.upstream.requests.isEmpty)
            #expect(cache.context.openAssets.all.isEmpty)
            #expect(try await cache.assets.page(AssetQuery()).items.isEmpty)
            #expect(try await cache.statistics.snapshot().all == TrafficFigures())
        }
    }

    @Test("Explain of a known range gives response, cached ranges and cost")
    func aKnownRangeTellsItsAnswerItsRunsAndItsCost() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 2000..<3000)
            let partial = try await explain(cache, "1000-3999")
            let hit = try await explain(cache, "2000-2999")
            let beyond = try await explain(cache, "9000000-")

            #expect(partial.answer.status == 206 && partial.answer.requestClass == .partial)
            #expect(partial.answer.contentRange == "bytes 1000-3999/3145728")
            #expect(partial.answer.contentLength == 3000 && partial.length == 3 << 20)
            #expect(partial.cached.runs == [2000..<3000])
            #expect(partial.source.url == bench.upstream.url("/a.mp4"))
            #expect(hit.answer.requestClass == .hit && hit.forecast == FillForecast())
            #expect(hit.freshness.use == .fresh && hit.freshness.reason == nil)
            #expect(beyond.answer.status == 416 && beyond.forecast.requestCount == 0)
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("Explain of a stale asset plans a confirmation and gives the reason")
    func whatIsStaleIsConfirmedAndTheReasonGiven() async throws {
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(4000))
            let stale = try await explain(cache, "0-999")

            #expect(stale.freshness.use == .confirm)
            #expect(stale.freshness.reason?.contains("stale since") == true)
            #expect(stale.forecast.requests.map(\.isConfirmation) == [true])
            #expect(stale.answer.requestClass == .revalidated)
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("Explain reports a negative cache entry as a read would")
    func aKeptRefusalIsToldAsTheReadWouldTellIt() async throws {
        bench.upstream.serve("/a.mp4") { _ in
            .response(status: 404, headers: ["Cache-Control": "max-age=60"])
        }
        try await bench.cache().run { cache in
            _ = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<10) }
            let refused = try await explain(cache, "0-9")

            #expect(refused.answer.requestClass == .negative)
            #expect(refused.answer.code == .upstreamRefused(status: 404))
            #expect(refused.forecast == FillForecast())
        }
    }

    @Test("Explain joins a running fill instead of planning a request")
    func aRunningFillIsNamedAndNotAskedForAgain() async throws {
        try await bench.withStalledRead { cache, read in
            let joining = try await explain(cache, "200000-449999")

            #expect(joining.joined == [read.fill.number])
            #expect(joining.forecast.requests == [.window(400_000..<450_000)])
            #expect(try cache.fills.fill(String(read.fill.number)).readers == 1)
            read.resume()
            _ = try await read.task.value
        }
    }

    @Test("A read makes the requests that explain predicted")
    func readsCostWhatWasSaidOfThem() async throws {
        let seed = SeededRandom.announced().seed
        let random = SeededChance(seed: seed)
        let bench = try Bench(LoopbackAsset(size: 6 << 20))
        // Gaps are not merged, because merging depends on the upstream's time to first byte.
        try await bench.cache { $0.gapMergeBytes = 0 }.run { cache in
            for turn in 0..<60 {
                let isShort = random.below(3) > 0
                let start = random.below(bench.asset.size - 1)
                let length = 1 + random.below(isShort ? 512 << 10 : 3 << 20)
                let range = start..<min(bench.asset.size, start + length)
                let before = bench.upstream.requests.count
                let said = try await explain(cache, "\(range.lowerBound)-\(range.upperBound - 1)")
                let read = try await cache.body(of: "a.mp4", range)
                let done = bench.upstream.requests.dropFirst(before).compactMap(\.range)
                let place: Comment = "seed \(seed), turn \(turn), \(range)"

                #expect(read.outcome.requestClass == said.answer.requestClass, place)
                guard turn > 0 else {
                    #expect(done.first == said.forecast.requests.first?.range, place)
                    continue
                }
                #expect(read.status == said.answer.status, place)
                #expect(done.reduce(0) { $0 + $1.length } == said.forecast.requestedBytes, place)
                #expect(ByteRangeSet(done) == ByteRangeSet(said.forecast.requests.compactMap(\.range)), place)
                #expect(said.forecast.requests.first?.range.map(done.contains) ?? done.isEmpty, place)
                guard isShort else { continue }
                #expect(Set(done) == Set(said.forecast.requests.compactMap(\.range)), place)
                #expect(done.count == said.forecast.requestCount, place)
            }
        }
    }

    @Test("After a restart explain reads the catalog without opening the asset")
    func afterARestartTheCatalogIsAskedAndNothingIsOpened() async throws {
        try await bench.cache().run { cache in _ = try await cache.body(of: "a.mp4", 1000..<2000) }
        try await bench.cache().run { cache in
            let said = try await explain(cache, "1000-2999")

            #expect(said.cached.runs == [1000..<2000])
            #expect(said.forecast.requests == [.window(2000..<3000)])
            #expect(cache.context.openAssets.all.isEmpty)
        }
    }

    @Test("Explain respects the request fields of the reader")
    func aReadersFieldsCount() async throws {
        let test = try bench.cache { $0.requestDirectives = true }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(1))
            let confirmed = try await explain(cache, "0-999", headers: ["Cache-Control": "no-cache"])
            let unfetched = try await explain(cache, "0-1999", headers: ["Cache-Control": "only-if-cached"])
            let unchanged = try await explain(cache, headers: ["If-None-Match": "\"v1\""])
            let head = try await explain(cache, isHead: true)

            #expect(confirmed.freshness.use == .confirm && confirmed.forecast.requests.map(\.isConfirmation) == [true])
            #expect(unfetched.answer.code == .notCached && unfetched.forecast.requests.isEmpty)
            #expect(unchanged.answer.status == 304 && unchanged.forecast.requestCount == 0)
            #expect(head.answer.status == 200 && head.answer.contentLength == 3 << 20)
            #expect(head.forecast.requestCount == 0)
        }
    }
}
