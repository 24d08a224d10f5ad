import CacheCore
import CacheEngine
import CacheStore
import CacheTestKit
import Testing

/// Jobs that supersede the older jobs of their queue.
@Suite(.timeLimit(.minutes(20))) struct JobQueueTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache() throws -> TestCache {
        try TestCache(directory: directory.path("data"), origins: [TestCache.origin(upstream)])
    }

    private func order(_ path: String, queue: String = "player", supersedes: Bool = true) -> CreateJobRequest {
        CreateJobRequest(items: [(.media(path), [])], queue: queue, supersedes: supersedes)
    }

    @Test("A superseding job runs, and the earlier jobs are cancelled")
    func theNewJobRunsAndTheOlderOnesAreCancelledBecauseOfIt() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 3_000_000, faults: [.stallBeforeHead(until: latch)]))
        upstream.serve("/b.mp4", LoopbackAsset(size: 1_000_000))
        let test = try cache()
        let ids = try await test.run { cache in
            let first = try await cache.jobs.submit(order("a.mp4"))
            let other = try await cache.jobs.submit(order("a.mp4", queue: "other"))
            await latch.reached()
            async let end = cache.finished(first)

            let second = try await cache.jobs.submit(order("b.mp4"))

            let ended = try await end
            #expect(ended.record.state == .cancelled && ended.tally[.cancelled] == 1)
            #expect(ended.record.error == .superseded(by: second.record.id))
            #expect(second.record.queue == "player")
            latch.release()
            #expect(try await cache.finished(second).record.state == .succeeded)
            #expect(try await cache.finished(other).record.state == .succeeded)
            let page = try await cache.jobs.page(JobQuery(queue: "player"))
            #expect(page.items.map(\.record.id) == [second.record.id, first.record.id])
            return [first.record.id, second.record.id]
        }

        try await cache().run { cache in
            let ended = try await cache.jobs.job(ids[0]).record
            #expect(ended.state == .cancelled && ended.error == .superseded(by: ids[1]))
        }
    }

    @Test("A repeated idempotency key returns the first job and supersedes nothing")
    func aRepeatedKeyAnswersTheFirstJobAndSupersedesNothing() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 1_000_000, faults: [.stallBeforeHead(until: latch)]))
        try await cache().run { cache in
            let first = try await cache.jobs.submit(order("missing.mp4"), idempotencyKey: "k")
            _ = try await cache.finished(first)
            let second = try await cache.jobs.submit(order("a.mp4"))
            await latch.reached()

            let again = try await cache.jobs.submit(order("missing.mp4"), idempotencyKey: "k")

            #expect(again.record.id == first.record.id)
            #expect(try await cache.jobs.job(second.record.id).record.state == .running)
            latch.release()
            #expect(try await cache.finished(second).record.state == .succeeded)
        }
    }

    @Test("Of concurrent superseding jobs exactly one stays unfinished")
    func ofManyThatComeAtOnceOneIsLeft() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/a.mp4", LoopbackAsset(size: 1_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()
        try await test.run { cache in
            let jobs = try await withThrowingTaskGroup(of: JobSnapshot.self) { group in
                for _ in 0..<20 { group.addTask { try await cache.jobs.submit(order("a.mp4")) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }

            let left = try await test.store.catalog.unfinishedJobs().map(\.id)
            #expect(left.count == 1)
            for job in jobs {
                let state = try await cache.jobs.job(job.record.id).record.state
                #expect(state.isFinished == !left.contains(job.record.id), "\(state)")
            }
            latch.release()
            for job in jobs where left.contains(job.record.id) {
                #expect(try await cache.finished(job).record.state == .succeeded)
            }
        }
    }

    @Test("A retried job supersedes the job that superseded it", arguments: [true, false])
    func whatWasSupersededTakesItsPlaceBackWhenItIsTriedAgain(_ saidSo: Bool) async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.serve("/a.mp4", LoopbackAsset(size: 1_000_000, faults: [.stallBeforeHead(until: latch)]))
        upstream.serve("/b.mp4", LoopbackAsset(size: 1_000_000, faults: [.stallBeforeHead(until: latch)]))
        let test = try cache()
        try await test.run { cache in
            let first = try await cache.jobs.submit(order("a.mp4", supersedes: saidSo))
            let second = try await cache.jobs.submit(order("b.mp4"))
            #expect(try await cache.finished(first).record.error == .superseded(by: second.record.id))

            let again = try await cache.jobs.retry(first.record.id)

            #expect(try await cache.finished(second).record.error == .superseded(by: first.record.id))
            #expect(!again.record.state.isFinished && again.record.error == nil)
            #expect(try await test.store.catalog.unfinishedJobs().map(\.id) == [first.record.id])
            await #expect(throws: CacheError.self) { try await cache.jobs.retry(first.record.id) }
            latch.release()
            #expect(try await cache.finished(again).record.state == .succeeded)
        }
    }

    @Test("A retried job that does not supersede runs beside the other jobs")
    func whatDoesNotSupersedeIsTriedAgainBesideTheOthers() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        upstream.serve("/b.mp4", LoopbackAsset(size: 1_000_000, faults: [.stallBeforeHead(until: latch)]))
        try await cache().run { cache in
            let first = try await cache.finished(try await cache.jobs.submit(order("a.mp4", supersedes: false)))
            #expect(first.record.state == .failed)
            let second = try await cache.jobs.submit(order("b.mp4", supersedes: false))
            await latch.reached()
            upstream.serve("/a.mp4", LoopbackAsset(size: 1_000_000))

            let again = try await cache.jobs.retry(first.record.id)

            #expect(try await cache.finished(again).record.state == .succeeded)
            #expect(try await cache.jobs.job(second.record.id).record.state == .running)
            latch.release()
            #expect(try await cache.finished(second).record.state == .succeeded)
        }
    }

    @Test("A retried job can be superseded again")
    func aJobThatIsTriedAgainIsSupersededToo() async throws {
        let latch = LoopbackLatch()
        upstream.serve("/b.mp4", LoopbackAsset(size: 1_000_000))
        try await cache().run { cache in
            let first = try await cache.finished(try await cache.jobs.submit(order("a.mp4")))
            #expect(first.record.state == .failed)
            upstream.serve("/a.mp4", LoopbackAsset(size: 1_000_000, faults: [.stallBeforeHead(until: latch)]))
            let again = try await cache.jobs.retry(first.record.id)
            await latch.reached()

            let second = try await cache.jobs.submit(order("b.mp4"))

            #expect(try await cache.finished(again).record.error == .superseded(by: second.record.id))
            latch.release()
            #expect(try await cache.finished(second).record.state == .succeeded)
        }
    }
}
