import CacheCore
import CacheEngine
import CacheStore
import CacheTestKit
import CurlUpstream
import Testing

/// Submission, persistence, listing and events of jobs.
@Suite struct JobTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache(wallClock: ManualWallClock = ManualWallClock()) throws -> TestCache {
        try TestCache(
            directory: directory.path("data"), origins: [TestCache.origin(upstream)], wallClock: wallClock)
    }

    @Test("A job resumes after a restart without fetching a byte twice")
    func aJobGoesOnAfterARestartWithoutFetchingAnythingTwice() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 20_000_000))
        upstream.failNext("/a.mp4", [.stall(after: 5_000_000, until: latch)])
        let id = try await cache().run { cache in
            let job = try await cache.jobs.submit(.of("a.mp4"))
            await latch.reached()
            let isStored = try await eventually { try await cache.statistics.snapshot().store.cachedBytes == 5_000_000 }
            #expect(isStored)
            return job.record.id
        }
        latch.release()

        try await cache().run { cache in
            let job = try await cache.finished(try await cache.jobs.job(id))

            #expect(job.record.state == .succeeded)
            #expect(job.tally.bytesFromUpstream == 20_000_000)
            #expect(job.tally.bytesFromCache == 0)
            #expect(try await cache.body(of: "a.mp4").bytes == LoopbackUpstream.bytes(at: 0..<20_000_000))
        }

        #expect(upstream.requests(for: "/a.mp4").map(\.range) == [0..<20_000_000, 5_000_000..<20_000_000])
    }

    @Test("A job states the cause of its wait before the jobs of the last run are loaded")
    func anUnfinishedJobIsLoadedBeforeItIsShown() async throws {
        let soon = ManualWallClock().now() + .seconds(3600)
        let id = try await cache().run { cache in
            var order = CreateJobRequest.of("a.mp4")
            order.times.notBefore = soon
            return try await cache.jobs.submit(order).record.id
        }

        // The loop that loads the jobs does not run.
        let test = try cache()
        #expect(try await test.cache.jobs.job(id).timeState.hold == .notBefore)
        test.pool.shutdown()
    }

    @Test("A running job is queued in the catalog when the service stops")
    func whatRunsWhenTheServiceStopsIsQueuedInTheCatalog() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 4_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()
        let id = try await test.cache.prepared { cache in
            let job = try await cache.jobs.submit(.of("a.mp4"))
            await latch.reached()
            #expect(try await cache.jobs.page(JobQuery(state: .running)).items.map(\.record.id) == [job.record.id])
            return job.record.id
        }

        let kept = try await test.store.catalog.job(id)

        #expect(kept?.state == .queued)
        #expect(kept?.items.map(\.state) == [.queued])
        latch.release()
        test.pool.shutdown()
    }

    @Test("A repeated submission with the same key returns the same job")
    func aRepeatedOrderWithTheSameKeyIsTheSameJob() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
        try await cache().run { cache in
            var order = CreateJobRequest.of("a.mp4")
            order.fingerprint = "one"
            let first = try await cache.jobs.submit(order, idempotencyKey: "k")
            _ = try await cache.finished(first)
            let second = try await cache.jobs.submit(order, idempotencyKey: "k")
            let third = try await cache.jobs.submit(order, idempotencyKey: "l")

            #expect(second.record.id == first.record.id)
            #expect(third.record.id != first.record.id)
            order.fingerprint = "two"
            await #expect(throws: CacheError.self) { try await cache.jobs.submit(order, idempotencyKey: "k") }
        }
    }

    @Test("An invalid job is rejected with the field name")
    func anOrderThatCannotBeCarriedOutIsRefusedByTheNameOfItsField() async throws {
        let orders: [(order: CreateJobRequest, field: String)] = [
            (CreateJobRequest(items: []), "items"),
            (CreateJobRequest(items: Array(repeating: (.media("a"), []), count: 10_001)), "items"),
            (
                CreateJobRequest(items: [(.media("a"), []), (.media("b"), ["bytes=0-1", "bytes=9-1"])]),
                "items[1].ranges[1]"
            ),
            (CreateJobRequest(items: [(.url("nonsense", key: nil), [])]), "items[0].url"),
            (CreateJobRequest(items: [(.mounted(origin: "media", path: "a", key: ""), [])]), "items[0].key"),
            (CreateJobRequest(items: [(.mounted(origin: "nobody", path: "a", key: nil), [])]), "items[0].origin"),
            (CreateJobRequest(items: [(.media("../a"), [])]), "items[0].path"),
            (CreateJobRequest(items: [(.media("a"), [])], maxBytesPerSecond: 0), "maxBytesPerSecond"),
            (CreateJobRequest(items: [(.media("a"), [])], timeout: .zero), "timeoutSeconds"),
            (CreateJobRequest(items: [(.media("a"), [])], supersedes: true), "supersede"),
            (CreateJobRequest(items: [(.media("a"), [])], queue: ""), "queue"),
            (CreateJobRequest(items: [(.media("a"), [])], queue: "a b"), "queue"),
            (CreateJobRequest(items: [(.media("a"), [])], queue: "ä"), "queue"),
            (CreateJobRequest(items: [(.media("a"), [])], queue: String(repeating: "a", count: 65)), "queue"),
        ]
        try await cache().run { cache in
            for (order, field) in orders {
                let error = await #expect(throws: CacheError.self) { try await cache.jobs.submit(order) }
                #expect(error?.code == .invalidField(field))
            }
            let kept = try await cache.jobs.page().items
            #expect(kept.isEmpty)
        }
    }

    @Test("A job with a forbidden host is rejected at once")
    func aHostThatMustNotBeReadIsRefusedAtOnce() async throws {
        try await cache().run { cache in
            let order = CreateJobRequest(items: [(.url("http://elsewhere.test/a", key: nil), [])])
            let error = await #expect(throws: CacheError.self) { try await cache.jobs.submit(order) }

            #expect(error?.code == .upstreamForbidden)
        }
    }

    @Test("Jobs are listed by state and label, newest first")
    func jobsAreListedByStateAndLabelTheNewestFirst() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
        try await cache().run { cache in
            var ids: [String] = []
            for (label, path) in [("x", "a.mp4"), ("y", "missing.mp4"), ("x", "a.mp4")] {
                var order = CreateJobRequest.of(path)
                order.label = label
                ids.append(try await cache.finished(try await cache.jobs.submit(order)).record.id)
            }

            #expect(try await cache.jobs.page().items.map(\.record.id) == ids.reversed())
            #expect(try await cache.jobs.page(JobQuery(label: "x")).items.map(\.record.id) == [ids[2], ids[0]])
            #expect(try await cache.jobs.page(JobQuery(state: .failed)).items.map(\.record.id) == [ids[1]])
            let page = try await cache.jobs.page(JobQuery(limit: 2))
            let rest = try await cache.jobs.page(JobQuery(limit: 2, cursor: page.nextCursor))
            #expect((page.items + rest.items).map(\.record.id) == ids.reversed())
            #expect(rest.nextCursor == nil)
        }
    }

    @Test("Job events start at once, rise in version and end with the job")
    func eventsBeginAtOnceGrowInVersionAndEndWithTheFinishedJob() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 3_000_000, faults: [.stallBeforeHead(until: latch)]))
        try await cache().run { cache in
            let job = try await cache.jobs.submit(.of("a.mp4"))
            await latch.reached()
            var seen: [JobSnapshot] = []
            for await snapshot in try await cache.jobs.events(job.record.id) {
                if seen.isEmpty { latch.release() }
                seen.append(snapshot)
            }

            #expect(seen.first?.record.state == .running)
            #expect(seen.last?.record.state == .succeeded)
            #expect(seen.dropLast().allSatisfy { !$0.record.state.isFinished })
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.version < $1.version })
            let late = try await cache.jobs.events(job.record.id)
            var states: [JobState] = []
            for await snapshot in late { states.append(snapshot.record.state) }
            #expect(states == [.succeeded])
        }
    }

    @Test("Cancelling a job observer ends its event stream")
    func aFollowerThatIsCancelledIsLetGo() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 3_000, faults: [.stallBeforeHead(until: latch)]))
        try await cache().run { cache in
            let job = try await cache.jobs.submit(.of("a.mp4"))
            await latch.reached()
            let events = try await cache.jobs.events(job.record.id)
            let count = await withTaskGroup(of: Int.self) { group in
                group.addTask {
                    var count = 0
                    for await _ in events { count += 1 }
                    return count
                }
                group.cancelAll()
                return await group.next() ?? -1
            }

            #expect((0...1).contains(count))
            latch.release()
            #expect(try await cache.finished(job).record.state == .succeeded)
        }
    }

    @Test("Finished jobs are deleted after a week")
    func finishedJobsAreForgottenAfterAWeek() async throws {
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
        let clock = ManualWallClock()
        let id = try await cache(wallClock: clock).run { cache in
            try await cache.finished(try await cache.jobs.submit(.of("a.mp4"))).record.id
        }

        clock.advance(by: .seconds(7 * 24 * 3600 + 1))
        try await cache(wallClock: clock).run { cache in
            // The hourly cleanup also runs at the start. It may not have finished yet.
            let isRemoved = try await eventually { (try? await cache.jobs.job(id)) == nil }
            #expect(isRemoved)

            let error = await #expect(throws: CacheError.self) { try await cache.jobs.job(id) }
            #expect(error?.code == .notFound)
        }
    }

    @Test("An unknown job is not found")
    func anUnknownJobIsNotFound() async throws {
        try await cache().run { cache in
            let errors = [
                await #expect(throws: CacheError.self) { _ = try await cache.jobs.job("none") },
                await #expect(throws: CacheError.self) { _ = try await cache.jobs.cancel("none") },
                await #expect(throws: CacheError.self) { _ = try await cache.jobs.retry("none") },
                await #expect(throws: CacheError.self) { _ = try await cache.jobs.items("none") },
                await #expect(throws: CacheError.self) { _ = try await cache.jobs.events("none") },
            ]
            #expect(errors.map { $0?.code } == Array(repeating: .notFound, count: 5))
        }
    }
}

extension AssetCache {
    /// Runs the cache while `body` runs; the store stays open.
    fileprivate func prepared<Value: Sendable>(
        _ body: @Sendable (AssetCache) async throws -> Value
    ) async throws -> Value {
        try await prepare()
        let outcome: Result<Value, any Error> = await withTaskGroup { group in
            group.addTask { await self.run() }
            defer { group.cancelAll() }
            do { return .success(try await body(self)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
