import CacheCore
import CacheEngine
import CacheTestKit
import Testing

/// Limits of a job: time, rate, space and store rules of the upstream.
@Suite struct PrefetchLimitTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache(
        policy: PolicySettings = TestCache.policy, _ settings: (inout OriginSettings) -> Void = { _ in }
    ) throws -> TestCache {
        var origin = TestCache.origin(upstream)
        settings(&origin.settings)
        return try TestCache(directory: directory.path("data"), origins: [origin], policy: policy)
    }

    @Test("A job that exceeds its timeout has timed out, not failed")
    func aJobWhoseTimeRunsOutTimesOutAndNeverFails() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()

        try await test.run { cache in
            var order = CreateJobRequest.of("a.mp4")
            order.timeout = .milliseconds(300)
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.state == .timedOut)
            #expect(job.record.error?.code == "upstreamTimedOut")
            #expect([job.tally[.timedOut], job.tally[.failed]] == [1, 0])
            latch.release()
        }
    }

    @Test("An upstream timeout makes the item time out")
    func anUpstreamThatIsTooSlowTimesTheItemOut() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache { settings in
            settings.timeouts.firstByte = .milliseconds(200)
            settings.retries = 0
        }

        try await test.run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4")))

            #expect(job.record.state == .timedOut)
            let item = try #require(try await cache.jobs.items(job.record.id).items.first)
            #expect(item.state == .timedOut)
            #expect(item.error?.code == "upstreamTimedOut")
            latch.release()
        }
    }

    @Test("An asset that may not be stored fails its item")
    func anAssetThatMustNotBeKeptFailsItsItem() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 100_000, cacheControl: "no-store"))
        let test = try cache { $0.freshness = .respect }

        try await test.run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4")))

            #expect(job.record.state == .failed)
            #expect(job.record.error?.code == "conflict")
        }
    }

    @Test("Ranges beyond the asset fail their item")
    func rangesBeyondTheAssetFailTheirItem() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 100))
        let test = try cache()

        try await test.run { cache in
            let order = CreateJobRequest(items: [
                (.media("a.mp4"), ["bytes=100-200"]), (.media("a.mp4"), ["bytes=50-200"]),
            ])
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.error?.code == "rangeNotSatisfiable")
            #expect([job.tally[.succeeded], job.tally[.failed]] == [1, 1])
        }
    }

    @Test("An item larger than the capacity is not fetched")
    func whatTheCacheMayNotHoldIsNotFetched() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 30_000_000))
        let test = try cache(policy: PolicySettings(capacityBytes: 20_000_000, minFreeDiskBytes: 0))

        try await test.run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4")))

            #expect(job.record.state == .failed)
            #expect(job.record.error?.code == "storageFull")
            #expect(try await cache.statistics.snapshot().all.requestedBytes < 1_000_000)
        }
    }

    @Test("A job respects its rate limit")
    func aJobKeepsToItsRate() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 900_000))
        let test = try cache()

        try await test.run { cache in
            var order = CreateJobRequest.of("a.mp4")
            order.maxBytesPerSecond = 1_000_000
            let start = ContinuousClock.now
            let job = try await cache.finished(try await cache.jobs.submit(order))

            // Of 900 kB at 1 MB/s the first 500 kB are requested at once, and the last 400 kB after 500 ms.
            #expect(job.record.state == .succeeded)
            #expect(ContinuousClock.now - start >= .milliseconds(450))
        }

        #expect(upstream.requestedBytes("/a.mp4") == 900_000)
    }

    @Test(
        "A job respects its rate limit if the upstream ignores ranges",
        arguments: [LoopbackAsset.Framing.length, .chunked])
    func aJobKeepsToItsRateWhereTheUpstreamKnowsNoRanges(_ framing: LoopbackAsset.Framing) async throws {
        let rate = 1_000_000.0
        let asset = LoopbackAsset(size: 2_000_000, acceptsRanges: false, framing: framing)
        upstream.serve("/a.mp4", asset)
        try await cache().run { cache in
            var order = CreateJobRequest.of("a.mp4")
            order.maxBytesPerSecond = Int64(rate)
            let start = ContinuousClock.now
            let job = try await cache.jobs.submit(order)
            var last = job
            for await step in try await cache.jobs.events(job.record.id) {
                // Half a second's bytes at once, the same number in flight, and the bytes of one turn.
                let due = rate * ((ContinuousClock.now - start) / .seconds(1)) + 1_500_000
                #expect(Double(step.tally.bytesFromUpstream) <= due)
                last = step
            }

            #expect(last.record.state == .succeeded && last.tally.bytesFromUpstream == asset.size)
            #expect(ContinuousClock.now - start >= .milliseconds(1450))
        }
        #expect(upstream.requests.count == 1)
    }

    @Test("Skipped bytes before the wanted range count against the rate limit")
    func whatComesBeforeTheBytesThatAreWantedCountsForTheRateToo() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 2_000_000, acceptsRanges: false))
        try await cache().run { cache in
            var order = CreateJobRequest(items: [(.media("a.mp4"), ["bytes=100-199", "bytes=1800000-1999999"])])
            order.maxBytesPerSecond = 1_000_000
            let start = ContinuousClock.now
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.state == .succeeded && job.tally.bytesFromUpstream == 200_100)
            #expect(ContinuousClock.now - start >= .milliseconds(1450))
        }
    }

    @Test("Refetched bytes count against the rate limit")
    func whatMustBeFetchedOnceMoreCountsForTheRateToo() async throws {
        let asset = LoopbackAsset(size: 2_000_000, acceptsRanges: false, faults: [.cut(after: 1_500_000)])
        upstream.serve("/a.mp4", asset)
        try await cache { $0.retries = 0 }.run { cache in
            _ = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4") }
            upstream.serve("/a.mp4", LoopbackAsset(size: 2_000_000, acceptsRanges: false))
            var order = CreateJobRequest.of("a.mp4")
            order.maxBytesPerSecond = 1_000_000
            let start = ContinuousClock.now
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.state == .succeeded)
            #expect(ContinuousClock.now - start >= .milliseconds(1450))
        }
    }

    @Test("A passed deadline ends the job, and a retry has no deadline")
    func aDeadlineThatHasPassedEndsTheJobAndARetryGoesWithoutIt() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()

        try await test.run { cache in
            var order = CreateJobRequest.of("a.mp4")
            order.deadlineAt = test.wallClock.now() - .seconds(1)
            await #expect(throws: CacheError.self) { try await cache.jobs.submit(order) }
            order.deadlineAt = test.wallClock.now() + .milliseconds(100)
            let submitted = try await cache.jobs.submit(order)
            test.wallClock.advance(by: .seconds(1))
            let job = try await cache.finished(submitted)
            #expect(job.record.state == .timedOut)

            let again = try await cache.jobs.retry(job.record.id)

            #expect(again.record.deadlineAt == nil)
            _ = try await cache.jobs.cancel(job.record.id)
        }
    }
}
