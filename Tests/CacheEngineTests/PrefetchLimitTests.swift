import CacheCore
import CacheEngine
import CacheTestKit
import Testing

/// What ends a job before it has everything: time, rate, space, and what the upstream forbids.
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

    @Test func aJobWhoseTimeRunsOutTimesOutAndNeverFails() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()

        try await test.run { cache in
            var order = JobOrder.of("a.mp4")
            order.timeout = .milliseconds(300)
            let job = try await cache.finished(try await cache.submit(order))

            #expect(job.record.state == .timedOut)
            #expect(job.record.error?.code == "upstreamTimedOut")
            #expect([job.itemsTimedOut, job.itemsFailed] == [1, 0])
            latch.release()
        }
    }

    @Test func anUpstreamThatIsTooSlowTimesTheItemOut() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache { settings in
            settings.timeouts.firstByte = .milliseconds(200)
            settings.retries = 0
        }

        try await test.run { cache in
            let job = try await cache.finished(try await cache.submit(.of("a.mp4")))

            #expect(job.record.state == .timedOut)
            let item = try #require(try await cache.jobItems(job.record.id).items.first)
            #expect(item.state == .timedOut)
            #expect(item.error?.code == "upstreamTimedOut")
            latch.release()
        }
    }

    @Test func anAssetThatMustNotBeKeptFailsItsItem() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 100_000, cacheControl: "no-store"))
        let test = try cache { $0.freshness = .respect }

        try await test.run { cache in
            let job = try await cache.finished(try await cache.submit(.of("a.mp4")))

            #expect(job.record.state == .failed)
            #expect(job.record.error?.code == "conflict")
        }
    }

    @Test func rangesBeyondTheAssetFailTheirItem() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 100))
        let test = try cache()

        try await test.run { cache in
            let order = JobOrder(items: [(.media("a.mp4"), ["bytes=100-200"]), (.media("a.mp4"), ["bytes=50-200"])])
            let job = try await cache.finished(try await cache.submit(order))

            #expect(job.record.error?.code == "rangeNotSatisfiable")
            #expect([job.itemsDone, job.itemsFailed] == [1, 1])
        }
    }

    @Test func whatTheCacheMayNotHoldIsNotFetched() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 30_000_000))
        let test = try cache(policy: PolicySettings(capacityBytes: 20_000_000, minFreeDiskBytes: 0))

        try await test.run { cache in
            let job = try await cache.finished(try await cache.submit(.of("a.mp4")))

            #expect(job.record.state == .failed)
            #expect(job.record.error?.code == "storageFull")
        }

        #expect(upstream.requestedBytes("/a.mp4") < 1_000_000)
    }

    @Test func aJobKeepsToItsRate() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 900_000))
        let test = try cache()

        try await test.run { cache in
            var order = JobOrder.of("a.mp4")
            order.maxBytesPerSecond = 1_000_000
            let start = ContinuousClock.now
            let job = try await cache.finished(try await cache.submit(order))

            // Of 900 kB at 1 MB/s the first half second's worth comes at once, and the last 400 kB after 500 ms.
            #expect(job.record.state == .succeeded)
            #expect(ContinuousClock.now - start >= .milliseconds(450))
        }

        #expect(upstream.requestedBytes("/a.mp4") == 900_000)
    }

    @Test func aDeadlineThatHasPassedEndsTheJobAndARetryGoesWithoutIt() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
        let test = try cache()

        try await test.run { cache in
            var order = JobOrder.of("a.mp4")
            order.deadlineAt = test.wallClock.now() - .seconds(1)
            order.maxBytesPerSecond = 10
            let job = try await cache.finished(try await cache.submit(order))
            #expect(job.record.state == .timedOut)

            let again = try await cache.retryJob(job.record.id)

            #expect(again.record.deadlineAt == nil)
            _ = try await cache.cancelJob(job.record.id)
        }
    }
}
