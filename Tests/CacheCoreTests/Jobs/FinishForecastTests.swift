@testable import CacheCore
import Testing

@Suite struct FinishForecastTests {
    typealias Job = FinishForecast.Job
    typealias Work = FinishForecast.Work

    private static func job(
        _ id: String, rank: Int = 0, _ party: String = "up", bytes: Double, items: Int = 1, limit: Double? = nil,
        deadline: Double? = nil, start: Double? = 0
    ) -> Job {
        Job(
            id: id, rank: rank, work: [Work(party: party, items: items, bytes: bytes)], limit: limit,
            deadline: deadline, start: start)
    }

    private static func ends(_ jobs: [Job], concurrency: Int = 16, _ rates: [String: Double] = ["up": 100])
        -> [String: Double]
    {
        FinishForecast.ends(of: jobs, rates: rates, concurrency: concurrency).mapValues { ($0 * 1000).rounded() / 1000 }
    }

    @Test("Jobs that run at the same time share the rate of their upstream")
    func jobsShareRates() {
        #expect(Self.ends([Self.job("a", bytes: 100), Self.job("b", bytes: 300)]) == ["a": 2, "b": 4])
    }

    @Test("Jobs without a slot wait for those before them")
    func jobsWaitForSlots() {
        let jobs = [Self.job("a", bytes: 200), Self.job("b", rank: 1, bytes: 300)]
        #expect(Self.ends(jobs, concurrency: 1) == ["a": 2, "b": 5])
    }

    @Test("Running items keep their slots, also those of later jobs")
    func runningItemsKeepSlots() {
        var later = Self.job("b", rank: 1, bytes: 300)
        later.work[0].isRunning = true
        #expect(Self.ends([Self.job("a", bytes: 200), later], concurrency: 1) == ["a": 5, "b": 3])
    }

    @Test("Upstreams are independent of each other, and a slow one does not delay the jobs of another")
    func upstreamsAreIndependent() {
        let jobs = [Self.job("a", "slow", bytes: 100), Self.job("b", bytes: 100)]
        #expect(Self.ends(jobs, ["slow": 10, "up": 100]) == ["a": 10, "b": 1])
    }

    @Test("Jobs of equal rank take turns; one with many items does not take all slots")
    func equalJobsTakeTurns() {
        let jobs = [Self.job("a", bytes: 400, items: 4), Self.job("b", bytes: 100)]
        #expect(Self.ends(jobs, concurrency: 2) == ["a": 5, "b": 2])
    }

    @Test("A rate limit bounds a job")
    func limitsBoundJobs() {
        #expect(Self.ends([Self.job("a", bytes: 100, items: 5, limit: 20)]) == ["a": 5])
    }

    @Test("A job begins at its start; a paused one and one at an unknown upstream have no end")
    func startsAndUnknownRates() {
        let jobs = [
            Self.job("a", bytes: 100, start: 10), Self.job("b", bytes: 100, start: nil),
            Self.job("c", "other", bytes: 1),
        ]
        #expect(Self.ends(jobs) == ["a": 11])
    }

    @Test("A job that misses its deadline ends there for the others, and has a later end itself")
    func lateJobsLeave() {
        let jobs = [Self.job("a", bytes: 1000, deadline: 4), Self.job("b", rank: 1, bytes: 300)]
        #expect(Self.ends(jobs, concurrency: 1) == ["a": 10, "b": 7])
    }

    @Test("Rates count the time with running items only")
    func ratesCountBusyTime() {
        var rates = OriginRates()
        #expect(rates.bytesPerSecond(of: "up") == nil)
        rates.began(at: "up", isLimited: false, .seconds(10))
        rates.received(1000, from: "up", isLimited: false, at: .seconds(11))
        rates.received(1000, from: "up", isLimited: false, at: .seconds(12))
        rates.ended(at: "up", isLimited: false, .seconds(12))
        #expect(rates.bytesPerSecond(of: "up") == 1000, "the rate after the first bytes")

        rates.began(at: "up", isLimited: false, .seconds(100))
        for second in 101...120 { rates.received(300, from: "up", isLimited: false, at: .seconds(second)) }

        #expect(rates.bytesPerSecond(of: "up") == 300, "the last five seconds count")
        rates.began(at: "up", isLimited: true, .seconds(120))
        rates.received(1, from: "up", isLimited: true, at: .seconds(130))
        #expect(rates.bytesPerSecond(of: "up") == 300, "a limited job tells nothing of the upstream")
    }

    @Test("The time until the first bytes of a busy period does not count")
    func warmUps() {
        var rates = OriginRates()
        func run(from start: Double) {
            rates.began(at: "up", isLimited: false, .seconds(start))
            // Reports each quarter of a second, of an upstream that answers after a second.
            for quarter in 4...20 {
                rates.received(250, from: "up", isLimited: false, at: .seconds(start + Double(quarter) / 4))
                let rate = rates.bytesPerSecond(of: "up")
                #expect(rate == nil || rate == 1000, "the rate \(quarter) quarters of a second after \(start) s")
            }
            rates.ended(at: "up", isLimited: false, .seconds(start + 5))
        }
        run(from: 10)
        run(from: 40)
        #expect(rates.bytesPerSecond(of: "up") == 1000)
    }

    @Test("A party with short busy periods has the rate of all of them")
    func shortPeriods() {
        var rates = OriginRates()
        for start in [10.0, 20, 30] {
            rates.began(at: "up", isLimited: false, .seconds(start))
            rates.received(400, from: "up", isLimited: false, at: .seconds(start + 0.4))
            rates.ended(at: "up", isLimited: false, .seconds(start + 0.4))
        }
        #expect(rates.bytesPerSecond(of: "up").map { abs($0 - 1000) < 1 } == true)
    }

    @Test("A late prediction is a risk after a doubt, and in the last quarter at once")
    func risks() {
        let (created, deadline) = (Timestamp(seconds: 0), Timestamp(seconds: 100))
        func moment(_ seconds: Int64) -> PrefetchSchedule.Moment {
            .init(wall: Timestamp(seconds: seconds), uptime: .seconds(seconds))
        }
        func update(_ risk: inout DeadlineRisk, _ predicted: Int64?, at seconds: Int64) -> Bool {
            _ = risk.update(
                predicted.map { Timestamp(seconds: $0) }, deadline: deadline, span: deadline.since(created),
                at: moment(seconds))
            return risk.isAtRisk
        }
        var risk = DeadlineRisk()
        let seen = [
            update(&risk, 120, at: 10), update(&risk, 90, at: 12), update(&risk, 120, at: 14),
            update(&risk, 120, at: 18),
            update(&risk, 120, at: 19), update(&risk, 80, at: 20), update(&risk, 80, at: 26),
        ]
        #expect(seen == [false, false, false, false, true, true, false])
        let late = [
            update(&risk, nil, at: 50), update(&risk, nil, at: 76), update(&risk, 90, at: 77),
            update(&risk, 90, at: 82),
        ]
        #expect(late == [false, true, true, false])
        let urgent = update(&risk, 101, at: 83)
        #expect(urgent)

        var early = DeadlineRisk()
        let margins = [
            update(&early, 115, at: 10), update(&early, 115, at: 16), update(&early, 110, at: 50),
            update(&early, 110, at: 55),
        ]
        #expect(margins == [false, false, false, true], "the margin is larger in the first half")
        var near = DeadlineRisk()
        #expect(!update(&near, 100, at: 96) && update(&near, 101, at: 96), "near the deadline a quarter of a second")
    }
}

@Suite struct DeadlineScheduleTests {
    typealias Base = PrefetchScheduleTests

    @Test("Of jobs of equal priority the one with the earliest deadline is first, and those without one are last")
    func theEarliestDeadlineIsFirst() {
        var (schedule, runs) = Base.opened(
            1, Base.job("x", priority: .high), Base.job("none"), Base.job("late", deadlineAt: Base.moment(900).wall),
            Base.job("soon", items: 2, deadlineAt: Base.moment(300).wall),
            Base.job("low", priority: .low, deadlineAt: Base.moment(100).wall))
        var order: [String] = []
        while let run = runs.first {
            order.append(run.job)
            runs = schedule.ended(run, .succeeded, at: Base.moment()).starts
        }

        #expect(order == ["x", "soon", "soon", "late", "none", "low"])
    }

    @Test("The schedule predicts ends from the progress of its runs, and reports a risk once")
    func theSchedulePredicts() throws {
        var job = Base.job("a", deadlineAt: Base.moment(20).wall)
        job.items[0].bytesTotal = 4000
        var (schedule, runs) = Base.opened(1, job)
        var reports: [PrefetchSchedule.Action] = []
        for second in 1...10 {
            _ = schedule.progressed(
                runs[0], .init(bytesTotal: 4000, bytesFromUpstream: Int64(second) * 100), at: Base.moment(Int64(second))
            )
            reports += schedule.predict(at: Base.moment(Int64(second)))
        }

        let progress = try #require(schedule.progress(of: "a", at: Base.moment(10)))
        #expect(progress.forecast == JobSnapshot.Forecast(finishAt: Base.moment(40).wall, isAtRisk: true))
        #expect(reports == [.changed(job: "a")] && schedule.atRiskCount == 1)
        _ = schedule.expire(at: Base.moment(20))
        #expect(schedule.progress(of: "a", at: Base.moment(20))?.forecast == JobSnapshot.Forecast())
        #expect(schedule.atRiskCount == 0)
    }
}
