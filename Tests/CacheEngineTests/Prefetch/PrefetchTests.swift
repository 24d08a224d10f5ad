import CacheCore
import CacheEngine
import CacheTestKit
import Testing

/// Jobs with a real store, libcurl and a loopback upstream.
@Suite struct PrefetchTests {
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

    @Test("A job fetches whole assets")
    func aJobFetchesWholeAssets() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 20_000_000))
        upstream.serve("/b.mp3", LoopbackAsset(size: 3_000, seed: 2))
        let test = try cache()

        try await test.run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4", "b.mp3")))

            #expect(job.record.state == .succeeded)
            #expect(job.record.error == nil)
            #expect([job.tally.itemsTotal, job.tally[.succeeded], job.tally[.failed]] == [2, 2, 0])
            #expect(job.tally.bytesTotal == 20_003_000)
            #expect(job.tally.bytesFromUpstream == 20_003_000)
            #expect(job.tally.bytesFromCache == 0)
            let read = try await cache.body(of: "a.mp4")
            #expect(read.outcome.requestClass == .hit)
            #expect(read.bytes == LoopbackUpstream.bytes(at: 0..<20_000_000))
        }

        #expect(upstream.requestedBytes("/a.mp4") == 20_000_000)
    }

    @Test("A job fetches only the ranges it names")
    func aJobFetchesTheRangesItNamesAndNothingElse() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 30_000_000))
        let test = try cache()

        try await test.run { cache in
            let order = CreateJobRequest(items: [
                (.media("a.mp4"), ["bytes=0-1048575", "bytes=500000-1500000", "bytes=-65536"])
            ])
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.state == .succeeded)
            #expect(job.tally.bytesTotal == 1_565_537)
            #expect(job.tally.bytesFromUpstream == 1_565_537)
            let id = try #require(try await cache.jobs.items(job.record.id).items.first?.assetID)
            #expect(try await cache.assets.extents(of: id) == [0..<1_500_001, 29_934_464..<30_000_000])
        }

        #expect(upstream.requestedRanges("/a.mp4").runs == [0..<1_500_001, 29_934_464..<30_000_000])
        #expect(upstream.requestedBytes("/a.mp4") == 1_565_537)
    }

    @Test("Cached bytes are not fetched again and count as cached")
    func whatIsOnDiskAlreadyIsNotFetchedAgainAndCountsAsCached() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000))
        let test = try cache()

        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 1_000_000..<2_000_000)
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4")))

            #expect(job.record.state == .succeeded)
            #expect(job.tally.bytesFromCache == 1_000_000)
            #expect(job.tally.bytesFromUpstream == 3_000_000)
        }

        #expect(upstream.requestedBytes("/a.mp4") == 4_000_000)
    }

    @Test("Two jobs for one asset fetch each byte once")
    func twoJobsForOneAssetFetchEachByteOnce() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 25_000_000))
        let test = try cache()

        try await test.run { cache in
            async let first = cache.finished(try await cache.jobs.submit(.of("a.mp4")))
            async let second = cache.finished(try await cache.jobs.submit(.of("a.mp4")))
            let jobs = try await [first, second]

            #expect(jobs.map(\.record.state) == [.succeeded, .succeeded])
            #expect(jobs.map(\.tally.bytesDone) == [25_000_000, 25_000_000])
        }

        #expect(upstream.requestedBytes("/a.mp4") == 25_000_000)
    }

    @Test("Cancelling a job keeps the bytes fetched so far")
    func cancellingKeepsWhatWasFetched() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000, faults: [.stall(after: 300_000, until: latch)]))
        let test = try cache()

        try await test.run { cache in
            let submitted = try await cache.jobs.submit(
                .of("a.mp4", "later.mp4", "last.mp4", "c.mp4", "d.mp4", "e.mp4"))
            await latch.reached()
            // Bytes sent by the upstream may not have arrived yet.
            #expect(
                try await eventually { try cache.fills.page(FillQuery()).items.contains { $0.position == 300_000 } })
            let job = try await cache.jobs.cancel(submitted.record.id)

            #expect(job.record.state == .cancelled)
            #expect(job.record.finishedAt != nil)
            #expect(job.tally[.cancelled] + job.tally[.failed] == 6)
            let again = try await cache.jobs.cancel(submitted.record.id)
            #expect(again.record.state == .cancelled)
            let id = try #require(try await cache.jobs.items(job.record.id).items.first?.assetID)
            #expect(try await cache.assets.extents(of: id) == [0..<300_000])
            latch.release()
        }
    }

    @Test("A refused item fails the job, and a later retry succeeds")
    func aRefusedItemFailsTheJobAndARetryAfterwardsSucceeds() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 50_000))
        let test = try cache()

        try await test.run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4", "b.mp4")))
            #expect(job.record.state == .failed)
            #expect(job.record.error?.code == "upstreamRefused")
            #expect([job.tally[.succeeded], job.tally[.failed]] == [1, 1])

            upstream.serve("/b.mp4", LoopbackAsset(size: 60_000))
            let again = try await cache.jobs.retry(job.record.id)
            #expect(!again.record.state.isFinished || again.record.state == .succeeded)
            let retried = try await cache.finished(again)

            #expect(retried.record.state == .succeeded)
            #expect(retried.tally[.succeeded] == 2)
            let items = try await cache.jobs.items(job.record.id).items
            #expect(items.map(\.attempts) == [1, 2])
            #expect(items.allSatisfy { $0.error == nil })
        }

        #expect(upstream.requestedBytes("/a.mp4") == 50_000)
    }

    @Test("A running job cannot be retried")
    func aJobThatStillRunsCannotBeRetried() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 40_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()

        try await test.run { cache in
            let job = try await cache.jobs.submit(.of("a.mp4"))
            await latch.reached()

            await #expect(throws: CacheError.self) { try await cache.jobs.retry(job.record.id) }
            latch.release()
            #expect(try await cache.finished(job).record.state == .succeeded)
        }
    }

    @Test("A changed asset is refetched completely")
    func aChangedAssetIsFetchedAnew() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 20_000_000))
        let test = try cache { $0.freshness = .ttl(.seconds(3600)) }

        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<600_000)
            upstream.serve("/a.mp4", LoopbackAsset(size: 20_000_000, seed: 9, etag: "\"v2\""))
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4")))

            #expect(job.record.state == .succeeded)
            #expect(job.tally.bytesFromUpstream == 20_000_000)
            #expect(try await cache.jobs.items(job.record.id).items.map(\.attempts) == [1])
            let read = try await cache.body(of: "a.mp4", 500_000..<700_000)
            #expect(read.outcome.requestClass == .hit)
            #expect(read.bytes == LoopbackUpstream.bytes(at: 500_000..<700_000, seed: 9))
        }
    }

    @Test("An upstream without ranges or length is fetched to its end")
    func anUpstreamWithoutRangesOrLengthIsFetchedToItsEnd() async throws {
        let asset = LoopbackAsset(size: 2_500_000, acceptsRanges: false, framing: .chunked)
        upstream.serve("/live.mp3", asset)
        let test = try cache()

        try await test.run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("live.mp3")))

            #expect(job.record.state == .succeeded)
            #expect(job.tally.bytesTotal == 2_500_000)
            #expect(job.tally.bytesDone == 2_500_000)
        }
    }

    @Test("An asset deleted during the job is refetched")
    func anAssetDeletedOnTheWayIsFetchedAnew() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 3_000_000))
        upstream.failNext("/a.mp4", [.stall(after: 500_000, until: latch)])
        let test = try cache()

        try await test.run { cache in
            let job = try await cache.jobs.submit(.of("a.mp4"))
            await latch.reached()
            let id = try #require(try await cache.jobs.items(job.record.id).items.first?.assetID)
            // The upstream has sent bytes; the cache knows the asset once it has read them.
            let isKnown = try await eventually { (try? await cache.assets.asset(id)) != nil }
            #expect(isKnown)
            try await cache.assets.delete(id, isSoft: false)
            latch.release()

            #expect(try await cache.finished(job).record.state == .succeeded)
            #expect(try await cache.assets.asset(id).cachedBytes == 3_000_000)
        }
    }

    @Test("The error of an item names the last status and the address of its upstream")
    func causeOfAnItem() async throws {
        let bench = try Bench()
        bench.upstream.serve("/a.mp4") { _ in .response(status: 503) }
        try await bench.cache { ($0.retries, $0.circuitBreaker) = (0, nil) }.run { cache in
            let origin = try cache.configuration.origin("media").origin
            let job = try await cache.finished(try await cache.jobs.submit(.of("a.mp4")))
            let item = try #require(try await cache.jobs.items(job.record.id).items.first)
            let address = try #require(cache.configuration.report(on: origin).addresses.first)

            #expect(item.error?.code == "upstreamRefused")
            let message = "The upstream answered with status 503. (\(UpstreamURL.address(of: origin.settings.baseURL)))"
            #expect(item.error?.message == message)
            #expect(address.failures.last?.status == 503 && address.state == .closed)
            #expect(address.failures.counts["503", default: 0] > 0)
        }
    }
}
