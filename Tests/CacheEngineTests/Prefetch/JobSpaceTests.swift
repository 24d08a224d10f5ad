import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Sizes of jobs and disk space of their items.
@Suite(.timeLimit(.minutes(10))) struct JobSpaceTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache(capacity: Int64? = nil, jobConcurrency: Int = 1) throws -> TestCache {
        var policy = TestCache.policy
        if let capacity { policy.capacityBytes = capacity }
        return try TestCache(
            directory: directory.path("data"), origins: [TestCache.origin(upstream)], policy: policy,
            jobConcurrency: jobConcurrency)
    }

    @Test("Known sizes are included in the job at once")
    func knownSizesAreToldAtOnce() async throws {
        for index in 0..<3 { upstream.serve("/\(index)", LoopbackAsset(size: 1000 * Int64(index + 1))) }
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.serve("/slow", LoopbackAsset(size: 10, faults: [.stallBeforeHead(until: latch)]))
        try await cache().run { cache in
            for index in 0..<3 { _ = try await cache.body(of: "\(index)", 0..<1) }
            let order = CreateJobRequest(items: [
                (.media("slow"), []), (.media("0"), []), (.media("1"), ["bytes=0-99", "bytes=50-149", "bytes=-50"]),
                (.media("2"), ["bytes=2900-"]),
            ])
            let job = try await cache.jobs.submit(order)

            #expect(job.tally.itemsUnknown == 1)
            #expect(job.tally.bytesTotal == 1300)
            latch.release()
            let finished = try await cache.finished(job)
            #expect(finished.record.state == .succeeded)
            #expect(finished.tally.itemsUnknown == 0 && finished.tally.bytesTotal == 1310)
        }
    }

    @Test("Unknown sizes are probed while items wait")
    func unknownSizesAreProbedWhileItemsWait() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.serve("/slow", LoopbackAsset(size: 10, faults: [.stallBeforeHead(until: latch)]))
        for index in 0..<20 { upstream.serve("/\(index)", LoopbackAsset(size: 100)) }
        try await cache().run { cache in
            let items = ["slow"] + (0..<20).map { "\($0)" } + ["missing"]
            let job = try await cache.jobs.submit(CreateJobRequest(items: items.map { (.media($0), []) }))
            let isMeasured = try await eventually { try await cache.jobs.job(job.record.id).tally.bytesTotal == 2000 }
            #expect(isMeasured)
            let present = try await cache.jobs.job(job.record.id)
            #expect(present.tally.itemsUnknown == 2 && present.tally[.succeeded] == 0)
            #expect(
                upstream.requests.filter { $0.path != "/slow" && $0.path != "/missing" }.allSatisfy {
                    $0.method == "HEAD"
                })
            latch.release()
            let finished = try await cache.finished(job)
            #expect(finished.tally[.succeeded] == 21 && finished.tally[.failed] == 1)
            #expect(upstream.requests(for: "/3").map(\.method) == ["HEAD", "GET"])
        }
    }

    @Test("Any range of an empty asset is satisfied with zero bytes")
    func anEmptyAssetHasAllOfAnyRange() async throws {
        upstream.serve("/empty", LoopbackAsset(size: 0))
        try await cache().run { cache in
            let order = CreateJobRequest(items: [(.media("empty"), ["bytes=0-99"]), (.media("empty"), ["bytes=-5"])])
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.state == .succeeded)
            #expect(job.tally.bytesTotal == 0 && job.tally[.succeeded] == 2)
        }
    }

    @Test("An item larger than the cache is rejected once its size is known")
    func anItemLargerThanTheCacheIsRefusedOnceItsSizeIsKnown() async throws {
        upstream.serve("/big", LoopbackAsset(size: 20 << 20))
        try await cache(capacity: 16 << 20).run { cache in
            let unknown = try await cache.finished(try await cache.jobs.submit(.of("big")))
            #expect(unknown.record.state == .failed && unknown.record.error?.code == "storageFull")

            let error = await #expect(throws: CacheError.self) { try await cache.jobs.submit(.of("big")) }
            #expect(error?.code == .invalidField("items[0]"))
            let part = CreateJobRequest(items: [(.media("big"), ["bytes=0-999"])])
            #expect(try await cache.finished(try await cache.jobs.submit(part)).record.state == .succeeded)
        }
    }

    @Test("A job evicts other assets but never its own items", arguments: [1, 4])
    func aJobEvictsOthersButNeverItsOwnItems(_ concurrency: Int) async throws {
        upstream.serve("/old", LoopbackAsset(size: 9 << 20))
        for index in 0..<6 { upstream.serve("/\(index)", LoopbackAsset(size: 5 << 20, seed: UInt64(index))) }
        try await cache(capacity: 16 << 20, jobConcurrency: concurrency).run { cache in
            _ = try await cache.body(of: "old")
            let order = CreateJobRequest(items: (0..<6).map { (.media("\($0)"), []) })
            let job = try await cache.finished(try await cache.jobs.submit(order))

            #expect(job.record.state == .failed)
            #expect(job.tally[.succeeded] == 3 && job.tally[.failed] == 3)
            let items = try await cache.jobs.items(job.record.id).items
            for item in items where item.state == .succeeded {
                let id = try #require(item.assetID)
                #expect(try await cache.assets.extents(of: id) == [0..<5 << 20])
            }
            #expect(items.allSatisfy { $0.state == .succeeded || $0.error?.code == "storageFull" })
            // No item is protected any more.
            let isFree = try await eventually { cache.context.space.with { $0.held.isEmpty && $0.heldBytes == 0 } }
            #expect(isFree)
            let next = try await cache.finished(try await cache.jobs.submit(.of("5")))
            #expect(next.record.state == .succeeded)
        }
    }

    @Test("Items of a job are not evicted when the job ends")
    func whatAJobFetchedStaysWhenTheJobIsOver() async throws {
        for (name, size) in [("a", 5 << 20), ("b", 5 << 20), ("c", 11 << 19)] as [(String, Int64)] {
            upstream.serve("/" + name, LoopbackAsset(size: size))
        }
        try await cache(capacity: 16 << 20).run { cache in
            let job = try await cache.finished(try await cache.jobs.submit(.of("a", "b", "c")))
            // Above the high watermark items would be evicted down to the low watermark.
            #expect(job.tally[.succeeded] == 2 && job.record.error?.code == "storageFull")
            try await cache.evictor.makeRoom()
            let kept = try await cache.assets.page(AssetQuery(state: .complete)).items
            #expect(Set(kept.map(\.record.key)) == ["/o/media/a", "/o/media/b"])
        }
    }

    @Test("Competing jobs do not evict each other's items")
    func competingJobsDoNotEvictEachOthersItems() async throws {
        for index in 0..<10 { upstream.serve("/\(index)", LoopbackAsset(size: 5 << 20, seed: UInt64(index))) }
        try await cache(capacity: 32 << 20, jobConcurrency: 4).run { cache in
            let jobs = try await [
                cache.jobs.submit(CreateJobRequest(items: (0..<5).map { (.media("\($0)"), []) })),
                cache.jobs.submit(CreateJobRequest(items: (5..<10).map { (.media("\($0)"), []) })),
            ]
            let order = try await withThrowingTaskGroup(of: String.self) { group in
                for job in jobs { group.addTask { try await cache.finished(job).record.id } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            try await cache.evictor.makeRoom()
            let complete = Set(try await cache.assets.page(AssetQuery(state: .complete)).items.map(\.record.id))
            // Items of the other job may be evicted after its end.
            for item in try await cache.jobs.items(order[1]).items {
                if item.state == .succeeded {
                    #expect(complete.contains(try #require(item.assetID)))
                } else {
                    #expect(item.error?.message.contains("pinned assets and jobs the cache has") ?? false)
                }
            }
        }
    }

    @Test("After a restart the items of an unfinished job stay protected")
    func afterARestartTheItemsOfAJobStillCount() async throws {
        for index in 0..<3 { upstream.serve("/\(index)", LoopbackAsset(size: 4 << 20, seed: UInt64(index))) }
        let latch = LoopbackLatch()
        upstream.failNext("/2", .stallBeforeHead(until: latch))
        var settings = TestCache.origin(upstream)
        settings.settings.quota.maxBytes = 10 << 20
        let origin = settings
        func open() throws -> TestCache {
            var policy = TestCache.policy
            policy.capacityBytes = 32 << 20
            return try TestCache(
                directory: directory.path("data"), origins: [origin], policy: policy, jobConcurrency: 1)
        }
        let id = try await open().run(isOrderly: false) { cache in
            var order = CreateJobRequest.of("0", "1", "2")
            order.isPinned = true
            let job = try await cache.jobs.submit(order)
            let isStalled = try await eventually { try await cache.jobs.job(job.record.id).tally[.succeeded] == 2 }
            #expect(isStalled)
            return job.record.id
        }
        latch.release()
        try await open().run { cache in
            let job = try await cache.finished(try await cache.jobs.job(id))
            #expect(job.tally[.succeeded] == 2 && job.tally[.failed] == 1)
            #expect(job.record.error?.message.contains("origin's quota has 2097152 left") ?? false)
            #expect(try await cache.assets.page(AssetQuery(state: .complete)).items.count == 2)
        }
    }

    @Test("Sizes are probed for a job that waits behind another job")
    func sizesAreProbedForAJobThatWaitsForAnother() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.serve("/slow", LoopbackAsset(size: 10, faults: [.stallBeforeHead(until: latch)]))
        for index in 0..<2 { upstream.serve("/\(index)", LoopbackAsset(size: 100)) }
        try await cache().run { cache in
            _ = try await cache.jobs.submit(.of("slow"))
            let isRunning = try await eventually { !upstream.requests(for: "/slow").isEmpty }
            #expect(isRunning)
            let job = try await cache.jobs.submit(.of("0", "1"))
            let isMeasured = try await eventually { try await cache.jobs.job(job.record.id).tally.bytesTotal == 200 }
            #expect(isMeasured)
        }
    }

    @Test("Tags and pin are applied to items that succeed")
    func tagsAndPinsAreGivenToItemsThatSucceed() async throws {
        upstream.serve("/a", LoopbackAsset(size: 1000))
        upstream.serve("/b", LoopbackAsset(size: 1000))
        try await cache().run { cache in
            _ = try await cache.body(of: "a", 0..<10)
            let id = try await cache.prober.probe(.media("a"), timeout: .seconds(5), refresh: false).assetID
            _ = try await cache.assets.patch(id, AssetPatch(tags: ["old", "evening"]))
            var order = CreateJobRequest.of("a", "b", "missing")
            (order.tags, order.isPinned) = (["evening", "new"], true)
            let job = try await cache.finished(try await cache.jobs.submit(order))
            #expect(job.tally[.succeeded] == 2 && job.tally[.failed] == 1)

            let assets = try await cache.assets.page(AssetQuery(isPinned: true)).items
            #expect(Set(assets.map(\.record.key)) == ["/o/media/a", "/o/media/b"])
            #expect(try await cache.assets.asset(id).record.tags == ["old", "evening", "new"])
            let item = try #require(try await cache.jobs.items(job.record.id).items.last)
            #expect(item.tags == ["evening", "new"] && item.isPinned)
        }
    }
}
