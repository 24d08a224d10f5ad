import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct StatisticsTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("The counters add up to the byte")
    func theFiguresAddUpToTheByte() async throws {
        bench.upstream.serve("/b.mp4", LoopbackAsset(size: 90_000, acceptsRanges: false))
        let test = try bench.cache()
        try await test.run { cache in
            var served: Int64 = 0
            for range in [0..<1000, 0..<1000, 500..<3000, 0..<200_000, 1_000_000..<1_700_000] as [ByteRange] {
                served += Int64(try await cache.body(of: "a.mp4", range).bytes.count)
            }
            served += Int64(try await cache.body(of: "b.mp4", 10..<20).bytes.count)
            // The rest of the body arrives after the read.
            _ = try await eventually { try await cache.isAtRest() }
            served += Int64(try await cache.body(of: "b.mp4").bytes.count)
            _ = try? await cache.body(of: "none.mp4")
            test.wallClock.advance(by: .seconds(4000))
            served += Int64(try await cache.body(of: "a.mp4", 0..<1000).bytes.count)
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            let stats = try await cache.statistics.snapshot()
            let all = stats.all

            #expect(all.requests == ["miss": 3, "hit": 2, "partial": 2, "revalidated": 1, "error": 1])
            #expect(all.requestsTotal == 9)
            #expect(all.servedBytes == served)
            #expect(all.servedFromCacheBytes + all.servedAfterFillBytes == served)
            let sent = bench.upstream.sentBytes("/a.mp4") + bench.upstream.sentBytes("/b.mp4")
            #expect(all.upstreamBytes == sent + Int64("not here".utf8.count))
            #expect(stats.origins.map(\.name) == ["media"])
            #expect(stats.store.cachedBytes == 900_000 + 90_000)
        }
    }

    @Test("The history records each minute once, also after a restart")
    func theHistoryKeepsEachMinutesIncreaseOnceAndOverARestart() async throws {
        let wallClock = ManualWallClock()
        func cache() throws -> TestCache {
            try TestCache(
                directory: bench.directory.path, origins: [TestCache.origin(bench.upstream)], wallClock: wallClock)
        }
        try await cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            try await cache.statistics.recordMinute()
            wallClock.advance(by: .seconds(60))
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            try await cache.statistics.recordMinute()
            try await cache.statistics.recordMinute()
        }
        try await cache().run { cache in
            wallClock.advance(by: .seconds(30))
            let steps = try await cache.statistics.history(window: .seconds(180), step: .seconds(60))

            #expect(steps.count == 3)
            #expect(steps.map { $0.figures.requestsTotal } == [0, 1, 1])
            #expect(steps.map { $0.figures.servedFromCacheBytes } == [0, 0, 1000])
        }
    }

    @Test("The most read assets are listed first")
    func theMostReadAssetsComeFirst() async throws {
        bench.upstream.serve("/b.mp4", LoopbackAsset(size: 5000))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<9000)
            for _ in 0..<3 { _ = try await cache.body(of: "b.mp4", 0..<1000) }

            #expect(cache.statistics.top(by: .served, limit: 10).map(\.servedBytes) == [9000, 3000])
            #expect(cache.statistics.top(by: .requests, limit: 1).map(\.key) == ["/o/media/b.mp4"])
            #expect(cache.statistics.top(by: .fromCache, limit: 1).map(\.servedFromCacheBytes) == [2000])
        }
    }

    @Test("A disconnected reader is counted with the bytes that have left, not with those handed out")
    func aReaderWhoHungUpIsCountedWithWhatItTook() async throws {
        try await bench.cache().run { cache in
            let read = try await cache.reader.read(Bench.media, request: ContentRequest())
            let taken = Int64(try await read.nextBytes()?.count ?? 0)
            read.sent(100)
            read.sent(taken - 300)
            let tally = read.finish(.clientGone)
            read.finish(.sent)
            let all = try await cache.statistics.snapshot().all

            #expect(taken > 300 && tally.bytesAfterFill == taken - 200)
            #expect(all.servedAfterFillBytes == taken - 200)
            #expect(all.clientAborted == 1 && all.requestsTotal == 1)
        }
    }

    @Test("A minute recorded before a counter existed is still read")
    func aMinuteWrittenBeforeAFigureWasCountedIsStillRead() throws {
        let line = #"{"requests":{"hit":2},"clientAborted":1,"upstreamBytes":5}"#
        let figures = try #require(TrafficFigures(json: line))
        #expect(figures.count(.hit) == 2 && figures.clientAborted == 1 && figures.upstreamBytes == 5)
        #expect(figures.requestedBytes == 0 && figures.waits.isEmpty)
        #expect(TrafficFigures(json: "[]") == nil)
    }

    @Test("Waits and hedges add up over the minutes")
    func waitsAndHedgesAddUpOverTheMinutes() {
        let counters = CacheCounters()
        let recorder = StatsRecorder()
        counters.waited(.arrived, origin: "media")
        recorder.wrote(counters.origins())
        counters.waited(.arrived, origin: "media")
        counters.waited(.failed(.notFound), origin: "media")
        counters.fillHedged(origin: "media")
        counters.hedgeWon(origin: "media")
        counters.requested(10, origin: "media")
        let increase = recorder.pending(of: counters.origins()).first?.increase

        #expect(increase?.waits == ["arrived": 1, "failed": 1])
        #expect(increase?.fillsHedged == 1 && increase?.hedgesWon == 1 && increase?.requestedBytes == 10)
        #expect(counters.origins()["media"]?.waits == ["arrived": 2, "failed": 1])
    }
}
