import CacheCore
import Testing

/// Jobs with a queue.
@Suite struct PrefetchScheduleQueueTests {
    private typealias Told = PrefetchScheduleTests

    @Test("A superseding job ends the unfinished jobs of its queue when it is added")
    func aJobThatSupersedesEndsTheUnfinishedOnesOfItsQueueAsItComes() {
        var (schedule, first) = Told.opened(
            3, Told.job("a", items: 2, queue: "q"), Told.job("b", queue: "r"), Told.job("c"))

        let actions = schedule.add(Told.job("d", queue: "q"), superseding: ["a"], at: Told.moment(1)) ?? []

        #expect(first.map(\.job) == ["a", "b", "c"])
        #expect(actions.first == .stop(first[0]) && actions.contains(.changed(job: "a")))
        let ended = schedule.progress(of: "a", at: Told.moment(1))
        #expect(ended?.record.state == .cancelled && ended?.record.error == .superseded(by: "d"))
        #expect(ended?.tally[.cancelled] == 2)
        #expect(schedule.state(of: "b") == .running && schedule.state(of: "c") == .running)
        #expect(schedule.ended(first[0], .interrupted, at: Told.moment(1)).starts.map(\.job) == ["d"])
    }

    @Test("Jobs of one queue run concurrently if none supersedes")
    func jobsOfOneQueueRunSideBySideWhereNoneSupersedes() {
        let (schedule, first) = Told.opened(2, Told.job("a", queue: "q"), Told.job("b", queue: "q"))

        #expect(first.map(\.job) == ["a", "b"] && schedule.activeCount == 2)
    }

    @Test("A superseded job outside the schedule is reported as changed")
    func whatIsSupersededWithoutBeingScheduledIsToldOf() {
        var (schedule, first) = Told.opened(1, Told.job("a", queue: "q"))
        _ = schedule.ended(first[0], .succeeded, at: Told.moment())

        let actions = schedule.add(Told.job("b", queue: "q"), superseding: ["a", "old"], at: Told.moment())

        #expect(actions?.contains(.changed(job: "old")) == true)
        #expect(schedule.state(of: "a") == .succeeded)
    }
}
