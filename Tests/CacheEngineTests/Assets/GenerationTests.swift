import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct GenerationTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("A response that may not be stored is served but not stored")
    func aResponseThatMayNotBeStoredIsServedAndNotKept() async throws {
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000, cacheControl: "no-store"))
        let test = try bench.cache { $0.freshness = .respect }
        try await test.run { cache in
            let first = try await cache.body(of: "a.mp4")
            let second = try await cache.body(of: "a.mp4")
            let page = try await cache.assets.page(AssetQuery())
            let used = try await eventually { cache.context.space.with { $0.usedBytes } == 0 }

            #expect(first.bytes == bench.asset.bytes(0..<300_000) && second.bytes == first.bytes)
            #expect(first.outcome.requestClass == .bypass && second.outcome.requestClass == .bypass)
            #expect(bench.upstream.requests.count == 2)
            #expect(page.items.isEmpty)
            #expect(try await test.store.usedDiskBytes() == 0)
            #expect(used)
        }
    }

    @Test("A cut body of unknown length is not taken as complete")
    func aBodyOfUnknownLengthThatIsCutIsNotTakenAsWhole() async throws {
        let asset = LoopbackAsset(
            size: 700_000, acceptsRanges: false, framing: .chunked, faults: [.cut(after: 300_000)])
        bench.upstream.serve("/a.mp4", asset)
        try await bench.cache { $0.retries = 1 }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4") }
            let summary = try await cache.assets.asset(try await bench.id(in: cache))

            #expect(error?.code == .upstreamProtocol || error?.code == .upstreamUnreachable())
            #expect(summary.record.generation.length == nil)
            #expect(!summary.isComplete)
        }
    }

    @Test("A transfer that never reaches its promised length fails the reader")
    func aPromisedLengthThatIsNeverReachedFailsTheReader() async throws {
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, faults: [.cut(after: 0)]))
        try await bench.cache { $0.retries = 1 }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            let isAtRest = try await eventually { try await cache.isAtRest() }

            #expect(error.map { [.upstreamProtocol, .upstreamUnreachable()].contains($0.code) } == true)
            #expect(bench.upstream.requests.count == 2)
            #expect(isAtRest)
        }
    }

    @Test("A truncated response without a validator is repeated within the retries of the read", arguments: [0, 2])
    func aTruncatedResponseIsRepeatedWithinTheRetries(_ retries: Int) async throws {
        for (path, etag) in [("/none.mp4", nil), ("/weak.mp4", #"W/"a""#)] {
            bench.upstream.serve(
                path, LoopbackAsset(size: 1000, etag: etag, acceptsRanges: false, faults: [.cut(after: 100)]))
        }
        try await bench.cache { $0.retries = retries }.run { cache in
            for path in ["none.mp4", "weak.mp4"] {
                let before = bench.upstream.requests.count
                await #expect(throws: CacheError.self) { try await cache.body(of: path) }
                #expect(bench.upstream.requests.count - before == 1 + retries)
            }
        }
    }

    @Test("A download over a connection that breaks again and again is completed")
    func aDownloadOverABreakingConnectionIsCompleted() async throws {
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 1 << 20, faults: [.cut(after: 100_000)]))
        try await bench.cache { $0.retries = 1 }.run { cache in
            let read = try await cache.body(of: "a.mp4")

            #expect(read.bytes.count == 1 << 20)
            #expect(bench.upstream.requests.count == 11)
        }
    }

    @Test("A refusal that a reader caused is no failure of the origin")
    func aRefusalOfAReaderIsNoFailure() async throws {
        bench.upstream.serve("/gone.mp4") { _ in .response(status: 404) }
        try await bench.cache().run { cache in
            await #expect(throws: CacheError.self) { try await cache.body(of: "gone.mp4") }
            _ = try? await cache.body(of: "a.mp4", (1 << 30)..<(1 << 31))
            let figures = try await cache.statistics.snapshot().all

            #expect(figures.fillsFailed == 0)
            #expect(figures.fillsSucceeded == 2)
        }
    }

    @Test("A stalled upstream times out the read within its limit")
    func aStalledUpstreamTimesTheReadOutWithinItsLimit() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        bench.upstream.serve("/a.mp4", LoopbackAsset(size: 3 << 20, faults: [.stallBeforeHead(until: latch)]))
        try await bench.cache { $0.readTimeout = .milliseconds(150) }.run { cache in
            let begun = ContinuousClock.now
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            let took = ContinuousClock.now - begun
            let figures = try await cache.statistics.snapshot().all

            #expect(error?.code == .upstreamTimedOut(.read))
            #expect(took < .seconds(10))
            #expect(figures.count(.error) == 1)
        }
    }

    @Test("A stalled transfer resumes from its next byte")
    func aTransferThatStallsIsBegunAgainFromItsNextByte() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        bench.upstream.failNext("/a.mp4", .stall(after: 100_000, until: latch))
        try await bench.cache { $0.timeouts.idle = .milliseconds(500) }.run { cache in
            let read = try await cache.body(of: "a.mp4", 0..<300_000)
            let figures = try await cache.statistics.snapshot().all

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<300_000)))
            #expect(bench.upstream.requests.map(\.range) == [0..<300_000, 100_000..<300_000])
            #expect(figures.fillsTimedOut == 1 && figures.fillsRetried == 1)
        }
    }

    @Test("An asset deleted upstream serves cached bytes and fails the rest")
    func anAssetDeletedUpstreamServesWhatIsOnDiskAndFailsTheRest() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            bench.upstream.serve("/a.mp4") { _ in .response(status: 404) }
            let present = try await cache.body(of: "a.mp4", 0..<1000)
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<2000) }

            #expect(present.bytes.isSame(as: bench.asset.bytes(0..<1000)))
            #expect(error?.code == .upstreamRefused(status: 404))
        }
    }
}
