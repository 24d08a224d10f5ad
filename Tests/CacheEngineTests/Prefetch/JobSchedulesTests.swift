import CacheCore
import CacheEngine
import CacheStore
import CacheTestKit
import Synchronization
import Testing

/// Schedules that start real jobs, by a clock that the test moves.
@Suite struct JobSchedulesTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
        upstream.serve("/a.mp4", LoopbackAsset(size: 100_000))
    }

    /// `seed`: each process makes other identifiers.
    private func cache(_ clock: ManualWallClock, seed: UInt64 = 1) throws -> TestCache {
        try TestCache(
            directory: directory.path("data"), origins: [TestCache.origin(upstream)], wallClock: clock, seed: seed)
    }

    private static func rights(
        _ order: CreateJobRequest = .of("a.mp4"), present: @escaping @Sendable (TokenOwner) -> TokenOwner? = { $0 }
    ) -> JobSchedules.Rights {
        JobSchedules.Rights(present: present, request: { _ in order })
    }

    private static func schedule(
        _ text: String, _ clock: ManualWallClock, owner: TokenOwner? = nil, deadline: Duration? = nil
    ) throws -> JobSchedule {
        JobSchedule(
            name: "s", repeat: try JobRepeat(text, at: nil), isEnabled: true, deadline: deadline, job: "{}",
            owner: owner, createdAt: clock.now())
    }

    private func save(_ schedule: JobSchedule, in cache: AssetCache) async throws {
        _ = try await cache.schedules.save(schedule) { _ in .none }
    }

    /// Waits until the last run is one for this instant.
    private func run(for instant: Timestamp, in cache: AssetCache) async throws -> ScheduledRun {
        var run: ScheduledRun?
        #expect(
            try await eventually {
                run = try await cache.schedules.schedule("s").stored.run
                return run?.dueAt == instant
            })
        return try #require(run)
    }

    @Test("A schedule starts a job with its deadline, once for each instant and once for many missed ones")
    func startsJobs() async throws {
        let clock = ManualWallClock()
        let begin = clock.now()
        try await cache(clock).run { cache in
            cache.schedules.begin(with: Self.rights())
            try await save(try Self.schedule("every:1h", clock, deadline: .seconds(60)), in: cache)
            let first = try await run(for: begin, in: cache)
            let job = try await cache.finished(try await cache.jobs.job(try #require(first.jobID)))
            #expect(job.record.state == .succeeded && job.record.label == "s")
            #expect(job.record.deadlineAt == first.at + .seconds(60))
            #expect(try await cache.schedules.schedule("s").nextRunAt == begin + .seconds(3600))
            clock.advance(by: .seconds(5 * 3600 + 100))
            let second = try await run(for: begin + .seconds(5 * 3600), in: cache)
            #expect(second.result == .started && second.jobID != first.jobID)
            _ = try await cache.finished(try await cache.jobs.job(try #require(second.jobID)))
            // Back in time, and forth again: the instant is settled.
            clock.advance(by: .seconds(-1800))
            #expect(try await cache.schedules.schedule("s").nextRunAt == begin + .seconds(6 * 3600))
            clock.advance(by: .seconds(2 * 3600 + 1800))
            _ = try await run(for: begin + .seconds(7 * 3600), in: cache)
            #expect(try await cache.jobs.count(JobQuery(label: "s")) == 3)
        }
    }

    @Test("After a kill a missed run is made up for once, and a started one is not repeated")
    func survivesAKill() async throws {
        let clock = ManualWallClock()
        let begin = clock.now()
        try await cache(clock).run(isOrderly: false) { cache in
            cache.schedules.begin(with: Self.rights())
            try await save(try Self.schedule("every:1h", clock), in: cache)
            _ = try await run(for: begin, in: cache)
            // An unfinished job would skip the next run: its end must be in the catalog.
            #expect(try await eventually { try await cache.jobs.count(JobQuery(state: .succeeded)) == 1 })
        }
        clock.advance(by: .seconds(3 * 3600))
        for seed in [UInt64(2), 3] {
            try await cache(clock, seed: seed).run(isOrderly: false) { cache in
                cache.schedules.begin(with: Self.rights())
                _ = try await run(for: begin + .seconds(3 * 3600), in: cache)
                #expect(try await cache.jobs.count(JobQuery(label: "s")) == 2)
            }
        }
    }

    @Test("A run is skipped while the last job is unfinished, unless the job supersedes")
    func skips() async throws {
        let (clock, latch) = (ManualWallClock(), LoopbackLatch())
        let begin = clock.now()
        upstream.serve("/held.mp4", LoopbackAsset(size: 100_000, faults: [.stallBeforeHead(until: latch)]))
        try await cache(clock).run { cache in
            defer { latch.release() }
            cache.schedules.begin(with: Self.rights(.of("held.mp4")))
            try await save(try Self.schedule("every:1m", clock), in: cache)
            let first = try await run(for: begin, in: cache)
            clock.advance(by: .seconds(60))
            let second = try await run(for: begin + .seconds(60), in: cache)
            #expect(second.result == .skipped && second.jobID == first.jobID)
            var order = CreateJobRequest.of("held.mp4")
            (order.queue, order.supersedes) = ("q", true)
            cache.schedules.begin(with: Self.rights(order))
            clock.advance(by: .seconds(60))
            let third = try await run(for: begin + .seconds(120), in: cache)
            #expect(third.result == .started && third.jobID != first.jobID)
        }
    }

    @Test("A schedule of a removed token is suspended, and one of a limited token fails outside its present limits")
    func rightsOfTheToken() async throws {
        let clock = ManualWallClock()
        let begin = clock.now()
        let owner = TokenOwner(id: "team")
        let present = Mutex<TokenOwner?>(nil)
        try await cache(clock).run { cache in
            cache.schedules.begin(with: Self.rights(present: { _ in present.withLock { $0 } }))
            try await save(try Self.schedule("every:1h", clock, owner: owner), in: cache)
            let suspended = try await cache.schedules.schedule("s")
            #expect(suspended.suspension?.contains("team") == true && suspended.nextRunAt == nil)
            let outside = TokenOwner(id: "team", limits: ContentLimits(origins: ["other"], prefixes: nil))
            present.withLock { $0 = outside }
            let failed = try await run(for: begin, in: cache)
            #expect(failed.result == .failed && failed.error?.code == "tokenScope")
            #expect(try await cache.jobs.count(JobQuery()) == 0)
            present.withLock { $0 = owner }
            clock.advance(by: .seconds(3600))
            let started = try await run(for: begin + .seconds(3600), in: cache)
            let job = try await cache.jobs.job(try #require(started.jobID))
            #expect(started.result == .started && job.record.owner == owner)
        }
    }

    @Test("Schedules have a total, and their revisions prevent lost changes")
    func totals() async throws {
        let clock = ManualWallClock()
        try await cache(clock).run { cache in
            var schedule = try Self.schedule("daily", clock)
            try await save(schedule, in: cache)
            let revision = try await cache.schedules.schedule("s").stored.revision
            try await save(schedule, in: cache)
            await #expect { _ = try await cache.schedules.save(schedule) { _ in .revision(revision) } } throws: {
                ($0 as? CacheError)?.code == .preconditionFailed
            }
            schedule.job = String(repeating: " ", count: JobSchedules.mostBytes + 1)
            await #expect { try await save(schedule, in: cache) } throws: {
                ($0 as? CacheError)?.code == .payloadTooLarge
            }
            schedule.job = "{}"
            for number in 1..<500 {
                schedule.name = "s\(number)"
                try await save(schedule, in: cache)
            }
            schedule.name = "more"
            await #expect { try await save(schedule, in: cache) } throws: {
                ($0 as? CacheError)?.code == .conflict
            }
            try await cache.schedules.delete("s7") { .revision($0.revision) }
            try await save(schedule, in: cache)
            #expect(try await cache.schedules.all().count == 500)
        }
    }
}
