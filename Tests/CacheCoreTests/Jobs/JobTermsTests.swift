import CacheCore
import Testing

@Suite struct JobTermsTests {
    typealias Base = PrefetchScheduleTests

    private static func changed(
        _ schedule: inout PrefetchSchedule, _ patch: JobPatch, _ job: String = "a", at seconds: Int64 = 1
    ) throws -> [PrefetchSchedule.Action] {
        let terms = try #require(schedule.terms(of: job))
        let next = try patch.applied(to: terms, at: Base.moment(seconds).wall)
        let actions = schedule.apply(next, of: job, over: terms.revision, at: Base.moment(seconds))
        return try #require(actions)
    }

    @Test("A pause stops the running items, and a resumption starts them again")
    func aPauseStopsRunningItems() throws {
        var (schedule, first) = Base.opened(2, Base.job("a", items: 3), Base.job("b"))
        #expect(first.map(\.job) == ["a", "b"])

        let paused = try Self.changed(&schedule, JobPatch(isPaused: true))

        #expect(paused == [.stop(first[0]), .changed(job: "a")])
        #expect(schedule.state(of: "a") == .paused)
        #expect(schedule.ended(first[0], .interrupted, at: Base.moment(2)).starts.isEmpty)
        #expect(schedule.ended(first[1], .succeeded, at: Base.moment(2)).starts.isEmpty)
        #expect(!schedule.hasRunnable)
        let resumed = try Self.changed(&schedule, JobPatch(isPaused: false), at: 3)
        #expect(resumed.starts.map(\.item) == [0, 1])
        #expect(schedule.state(of: "a") == .running)
    }

    @Test("An item starts again only when its stopped run has ended")
    func runsOfOneItemDoNotOverlap() throws {
        var (schedule, first) = Base.opened(2, Base.job("a"))
        _ = try Self.changed(&schedule, JobPatch(isPaused: true))

        let resumed = try Self.changed(&schedule, JobPatch(isPaused: false))
        let ended = schedule.ended(first[0], .interrupted, at: Base.moment(2))

        #expect(resumed.starts.isEmpty)
        #expect(ended.starts.map(\.item) == [0])
    }

    @Test("A paused job is restored as paused, and its items as queued")
    func aPausedJobStaysPausedOverARestart() throws {
        var record = Base.job("a", items: 2)
        record.state = .paused
        record.items[0].state = .running
        record.items[1].state = .waiting
        record.items[1].wait = ItemWait(
            for: ItemWait.Hold(.quota, of: "up"), since: Base.moment().wall, retryAt: Base.moment().wall)

        var (schedule, first) = Base.opened(2, record)

        #expect(first.isEmpty && schedule.state(of: "a") == .paused)
        #expect(schedule.progress(of: "a", at: Base.moment())?.tally[.queued] == 2)
        let expired = schedule.expire(at: Base.moment(100_000))
        let resumed = try Self.changed(&schedule, JobPatch(isPaused: false), at: 100_001)
        #expect(expired.isEmpty && resumed.starts.count == 2)
    }

    @Test("A pause ends the waits of items")
    func aPauseEndsWaits() throws {
        var (schedule, first) = Base.opened(1, Base.job("a"))
        let hold = ItemWait.Hold(.quota, of: "up")
        _ = schedule.ended(first[0], .waiting(hold, .seconds(5), Base.error), at: Base.moment(1))
        #expect(schedule.progress(of: "a", at: Base.moment(1))?.tally[.waiting] == 1)

        _ = try Self.changed(&schedule, JobPatch(isPaused: true), at: 2)

        #expect(schedule.progress(of: "a", at: Base.moment(2))?.tally[.queued] == 1)
        let expired = schedule.expire(at: Base.moment(60))
        let resumed = try Self.changed(&schedule, JobPatch(isPaused: false), at: 61)
        #expect(expired.starts.isEmpty && resumed.starts.count == 1)
    }

    @Test("A deadline ends a paused job")
    func aDeadlineEndsAPausedJob() throws {
        var (schedule, _) = Base.opened(1, Base.job("a", deadlineAt: Base.moment(10).wall))
        _ = try Self.changed(&schedule, JobPatch(isPaused: true))

        _ = schedule.expire(at: Base.moment(10))

        #expect(schedule.state(of: "a") == .timedOut)
    }

    @Test("Another priority changes the order at once")
    func priorityChangesTheOrder() throws {
        var (schedule, first) = Base.opened(1, Base.job("x"), Base.job("a"), Base.job("b"))

        _ = try Self.changed(&schedule, JobPatch(priority: .high), "b")

        #expect(schedule.ended(first[0], .succeeded, at: Base.moment(2)).starts.map(\.job) == ["b"])
    }

    @Test("A first or a removed rate limit restarts the running items; another value does not")
    func rateLimitsRestartItems() throws {
        var (schedule, first) = Base.opened(2, Base.job("a", items: 2))

        let limited = try Self.changed(&schedule, JobPatch(maxBytesPerSecond: .value(1000)))

        #expect(Set(limited) == Set(first.map { .stop($0) } + [.changed(job: "a")]))
        for run in first { _ = schedule.ended(run, .interrupted, at: Base.moment(2)) }
        #expect(schedule.activeCount == 1)
        let again = try Self.changed(&schedule, JobPatch(maxBytesPerSecond: .value(2000)))
        #expect(again == [.changed(job: "a")])
    }

    @Test("Terms of another revision are not replaced")
    func revisionsAreCompared() throws {
        var (schedule, _) = Base.opened(1, Base.job("a"))
        let terms = try #require(schedule.terms(of: "a"))
        _ = try Self.changed(&schedule, JobPatch(priority: .high))

        let actions = schedule.apply(terms, of: "a", over: terms.revision, at: Base.moment(2))
        #expect(actions == nil)
        #expect(schedule.terms(of: "a")?.priority == .high)
    }

    @Test("A patch without an effect keeps the revision, and a passed deadline is refused")
    func patchesAreChecked() throws {
        let now = Base.moment().wall
        let terms = JobTerms(priority: .low, deadlineAt: now, revision: 4)

        #expect(try JobPatch(priority: .low, deadlineAt: .value(now)).applied(to: terms, at: now) == terms)
        #expect(try JobPatch(deadlineAt: .null).applied(to: terms, at: now).revision == 5)
        let error = #expect(throws: CacheError.self) {
            try JobPatch(deadlineAt: .value(now - .seconds(1))).applied(to: terms, at: now)
        }
        #expect(error?.code == .invalidField("deadlineAt"))
    }
}
