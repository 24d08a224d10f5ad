import CacheCore
import Testing

/// Waiting items of the schedule.
@Suite struct PrefetchScheduleWaitTests {
    typealias Run = PrefetchSchedule.Run

    private static let hold = ItemWait.Hold(.circuit, of: "media")
    private static let error = RecordedError(code: "upstreamUnreachable", message: "The upstream failed 10 times.")

    private static func moment(_ seconds: Int64) -> PrefetchSchedule.Moment { PrefetchScheduleTests.moment(seconds) }

    private static func job(_ id: String, items: Int, timeout: Duration? = nil) -> JobRecord {
        var job = PrefetchScheduleTests.job(id, timeout: timeout)
        job.items = (0..<items).map {
            JobItemRecord(index: $0, reference: .mounted(origin: "media", path: "\($0)", key: nil))
        }
        return job
    }

    private static func waiting(_ hold: ItemWait.Hold = hold, _ time: Duration? = .seconds(10))
        -> PrefetchSchedule.Outcome
    {
        .waiting(hold, time, error)
    }

    /// Lets all items that start wait, at the given time. Returns the number of runs.
    private static func block(
        _ schedule: inout PrefetchSchedule, _ first: [Run], by hold: ItemWait.Hold = hold, at seconds: Int64 = 0
    ) -> Int {
        var (runs, count) = (first, 0)
        while let run = runs.popLast() {
            count += 1
            runs += schedule.ended(run, waiting(hold), at: moment(seconds)).starts
        }
        return count
    }

    private static func states(_ schedule: PrefetchSchedule, _ job: String = "a") -> [JobState] {
        schedule.items(of: job, after: -1, atMost: 10_000)?.map(\.state) ?? []
    }

    @Test("Waiting items hold no permit, and other items run")
    func permits() {
        var (schedule, first) = PrefetchScheduleTests.opened(
            2, Self.job("a", items: 100), PrefetchScheduleTests.job("b"))

        let count = Self.block(&schedule, first.filter { $0.job == "a" })

        #expect(count == 100)
        #expect(schedule.activeCount == 1)
        let snapshot = schedule.progress(of: "a", at: Self.moment(0))
        #expect(snapshot?.tally[.waiting] == 100 && snapshot?.tally[.failed] == 0)
        #expect(snapshot?.record.state == .running && schedule.hasRunnable)
        let item = schedule.items(of: "a", after: -1, atMost: 1)?.first
        #expect(item?.wait == ItemWait(for: Self.hold, since: Self.moment(0).wall, retryAt: Self.moment(10).wall))
        #expect(item?.error == Self.error)
    }

    @Test("One item repeats for all; it postpones the others if it waits again")
    func canary() {
        var (schedule, first) = PrefetchScheduleTests.opened(2, Self.job("a", items: 50))
        _ = Self.block(&schedule, first)

        #expect(schedule.nextLimit(at: Self.moment(4)) == .seconds(6))
        #expect(schedule.expire(at: Self.moment(9)).starts.isEmpty)
        let again = schedule.expire(at: Self.moment(10)).starts
        #expect(again.count == 1)
        #expect(schedule.expire(at: Self.moment(11)).starts.isEmpty)
        #expect(schedule.ended(again[0], Self.waiting(), at: Self.moment(12)).starts.isEmpty)

        let items = schedule.items(of: "a", after: -1, atMost: 50) ?? []
        #expect(items.allSatisfy { $0.state == .waiting && $0.wait?.retryAt == Self.moment(22).wall })
        #expect(items.allSatisfy { $0.wait?.since == Self.moment(0).wall })
        #expect(items.map(\.attempts).reduce(0, +) == 51)
    }

    @Test("All items are queued when the repetition does not wait", arguments: [true, false])
    func release(withProgress: Bool) {
        var (schedule, first) = PrefetchScheduleTests.opened(2, Self.job("a", items: 50))
        _ = Self.block(&schedule, first)
        let again = schedule.expire(at: Self.moment(10)).starts[0]

        if withProgress {
            let next = schedule.progressed(again, .init(bytesFromUpstream: 1), at: Self.moment(11))
            #expect(next.starts.count == 1)
        } else {
            #expect(schedule.ended(again, .succeeded, at: Self.moment(11)).starts.count == 2)
        }
        #expect(schedule.activeCount == 2)
        #expect(!Self.states(schedule).contains(.waiting))
    }

    @Test("Growing intervals are used without a stated time")
    func intervals() {
        var (schedule, first) = PrefetchScheduleTests.opened(1, Self.job("a", items: 1))
        var (run, now, waits) = (first[0], Int64(0), [Int64]())
        for _ in 0..<8 {
            _ = schedule.ended(run, Self.waiting(Self.hold, nil), at: Self.moment(now))
            let wait = schedule.nextLimit(at: Self.moment(now))?.components.seconds ?? 0
            waits.append(wait)
            now += wait
            run = schedule.expire(at: Self.moment(now)).starts[0]
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60])
    }

    @Test("A cause that ends wakes its items after the shortest wait, and no others")
    func wake() {
        var (schedule, first) = PrefetchScheduleTests.opened(8, Self.job("a", items: 4), Self.job("b", items: 4))
        let other = ItemWait.Hold(.circuit, of: "films")
        for run in first {
            _ = schedule.ended(run, Self.waiting(run.job == "a" ? Self.hold : other), at: Self.moment(0))
        }

        #expect(schedule.wake([Self.hold], at: Self.moment(0)).isEmpty)
        #expect(schedule.wake([Self.hold], at: Self.moment(1)).starts.map(\.job) == ["a", "a", "a", "a"])
        #expect(schedule.wake([], probing: [other], at: Self.moment(1)).starts.map(\.job) == ["b"])
        #expect(schedule.presentHolds == [other])
    }

    @Test("Queued items wait without a run while a run would send a request", arguments: ItemWait.Cause.allCases)
    func blocked(cause: ItemWait.Cause) {
        let hold = ItemWait.Hold(cause, of: "media")
        var (schedule, first) = PrefetchScheduleTests.opened(2, Self.job("a", items: 30))

        #expect(Self.block(&schedule, first, by: hold) == ([.circuit, .live].contains(cause) ? 30 : 2))
        #expect(schedule.progress(of: "a", at: Self.moment(0))?.tally[.waiting] == 30)
    }

    @Test("Items fail after 24 hours, unless the job has a limit of its own")
    func limit() {
        let day: Int64 = 24 * 3600
        var (schedule, first) = PrefetchScheduleTests.opened(
            4, Self.job("a", items: 2), Self.job("b", items: 2, timeout: .seconds(2 * day)))
        for run in first { _ = schedule.ended(run, Self.waiting(Self.hold, .seconds(9 * day)), at: Self.moment(0)) }

        _ = schedule.expire(at: Self.moment(day - 1))
        #expect(Self.states(schedule) == [.waiting, .waiting])
        _ = schedule.expire(at: Self.moment(day))
        #expect(Self.states(schedule) == [.failed, .failed] && schedule.state(of: "a") == .failed)
        #expect(schedule.progress(of: "a", at: Self.moment(day))?.record.error?.code == Self.error.code)
        #expect(Self.states(schedule, "b") == [.waiting, .waiting])
        _ = schedule.expire(at: Self.moment(2 * day))
        #expect(schedule.state(of: "b") == .timedOut && Self.states(schedule, "b") == [.timedOut, .timedOut])
    }

    @Test("A cancelled job ends its waiting items at once, and its hold with them")
    func cancel() {
        var (schedule, first) = PrefetchScheduleTests.opened(2, Self.job("a", items: 50))
        _ = Self.block(&schedule, first)
        let again = schedule.expire(at: Self.moment(10)).starts[0]

        #expect(schedule.cancel("a", at: Self.moment(11)).contains(.stop(again)))
        #expect(Set(Self.states(schedule)) == [.cancelled])
        _ = schedule.ended(again, .interrupted, at: Self.moment(11))
        _ = schedule.expire(at: Self.moment(12))
        #expect(schedule.presentHolds.isEmpty && schedule.unfinishedCount == 0)
    }

    @Test("Waiting items survive a restart with their cause and time")
    func restart() {
        var (schedule, first) = PrefetchScheduleTests.opened(2, Self.job("a", items: 3))
        _ = Self.block(&schedule, first)
        let changes = schedule.takeChanges()
        var record = changes[0].job
        record.items = changes[0].items

        var next = PrefetchSchedule(concurrency: 2)
        _ = next.add(record, at: Self.moment(5))
        #expect(next.open(at: Self.moment(5)).starts.isEmpty)
        #expect(Self.states(next) == [.waiting, .waiting, .waiting])
        #expect(next.expire(at: Self.moment(10)).starts.count == 1)
    }

    @Test("A repetition that is stopped is repeated")
    func interrupted() {
        var (schedule, first) = PrefetchScheduleTests.opened(1, Self.job("a", items: 2))
        _ = Self.block(&schedule, first)
        let again = schedule.expire(at: Self.moment(10)).starts[0]
        _ = schedule.close(at: Self.moment(11))
        _ = schedule.ended(again, .interrupted, at: Self.moment(11))

        #expect(Self.states(schedule) == [.queued, .waiting])
        #expect(schedule.open(at: Self.moment(12)).starts.count == 1)
    }
}
