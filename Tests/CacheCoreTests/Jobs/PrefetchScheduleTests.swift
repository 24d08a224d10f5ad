import CacheCore
import Testing

@Suite struct PrefetchScheduleTests {
    typealias Moment = PrefetchSchedule.Moment
    typealias Run = PrefetchSchedule.Run

    static let error = RecordedError(code: "upstreamRefused", message: "The upstream answered 404.")

    static func moment(_ seconds: Int64 = 0) -> Moment {
        Moment(wall: Timestamp(seconds: 1_000_000 + seconds), uptime: .seconds(seconds))
    }

    static func job(
        _ id: String, items: Int = 1, priority: JobPriority = .normal, timeout: Duration? = nil,
        deadlineAt: Timestamp? = nil, queue: String? = nil
    ) -> JobRecord {
        JobRecord(
            id: id, queue: queue, priority: priority, timeout: timeout, deadlineAt: deadlineAt,
            createdAt: moment().wall,
            items: (0..<items).map { JobItemRecord(index: $0, reference: .url("http://up.test/\($0)", key: nil)) })
    }

    static func opened(_ concurrency: Int, _ jobs: JobRecord...) -> (PrefetchSchedule, [Run]) {
        var schedule = PrefetchSchedule(concurrency: concurrency)
        for job in jobs { _ = schedule.add(job, at: moment()) }
        let runs = schedule.open(at: moment()).starts
        return (schedule, runs)
    }

    /// Runs all items to their ends, one at a time. Returns the order of their starts.
    private static func order(_ schedule: inout PrefetchSchedule, _ first: [Run]) -> [String] {
        var waiting = first
        var order: [String] = []
        while !waiting.isEmpty {
            let run = waiting.removeFirst()
            order.append("\(run.job)\(run.item)")
            waiting += schedule.ended(run, .succeeded, at: moment()).starts
        }
        return order
    }

    @Test("Nothing starts before the schedule is open")
    func nothingStartsBeforeTheScheduleIsOpen() {
        var schedule = PrefetchSchedule(concurrency: 2)

        let actions = schedule.add(Self.job("a"), at: Self.moment())

        #expect(actions == [.changed(job: "a")])
        #expect(schedule.open(at: Self.moment()).starts.map(\.job) == ["a"])
    }

    @Test("Jobs of higher priority start first")
    func urgentJobsGoFirst() {
        var (schedule, first) = Self.opened(
            1, Self.job("l", priority: .low), Self.job("n"), Self.job("h", priority: .high))

        #expect(Self.order(&schedule, first) == ["h0", "n0", "l0"])
    }

    @Test("Jobs of equal priority alternate, oldest first")
    func jobsOfEqualPriorityTakeTurnsTheOldestFirst() {
        var (schedule, first) = Self.opened(1, Self.job("a", items: 3), Self.job("b", items: 2), Self.job("c"))

        #expect(Self.order(&schedule, first) == ["a0", "b0", "c0", "a1", "b1", "a2"])
    }

    @Test("A job added later waits for its turn")
    func aJobThatComesLateWaitsForItsTurn() {
        var (schedule, first) = Self.opened(1, Self.job("a", items: 2), Self.job("b", items: 2))
        let second = schedule.ended(first[0], .succeeded, at: Self.moment()).starts

        _ = schedule.add(Self.job("c"), at: Self.moment())

        #expect(Self.order(&schedule, second) == ["b0", "a1", "b1", "c0"])
    }

    @Test("No more items run than the limit allows")
    func noMoreItemsRunThanTheLimitAllows() {
        var (schedule, first) = Self.opened(3, Self.job("a", items: 5))
        #expect(first.map(\.item) == [0, 1, 2])

        let next = schedule.ended(first[1], .succeeded, at: Self.moment()).starts

        #expect(next.map(\.item) == [3])
        #expect(schedule.activeCount == 3)
    }

    @Test("A job with a rate limit uses a quarter of the slots", arguments: [(3, 1), (4, 1), (8, 2), (16, 4)])
    func aJobThatKeepsToARateUsesFewSlots(concurrency: Int, runs: Int) {
        var slow = Self.job("a", items: 9)
        slow.maxBytesPerSecond = 1000
        var (schedule, first) = Self.opened(concurrency, slow, Self.job("b", items: 1))

        #expect(first.count { $0.job == "a" } == runs && first.count { $0.job == "b" } == 1)
        #expect(schedule.ended(first[0], .succeeded, at: Self.moment()).starts.map(\.item) == [runs])
    }

    @Test(
        "The outcome of a job follows from its items",
        arguments: [
            ([PrefetchSchedule.Outcome.succeeded, .succeeded], JobState.succeeded),
            ([.succeeded, .failed(error)], .failed),
            ([.timedOut(error), .failed(error)], .failed),
            ([.succeeded, .timedOut(error)], .timedOut),
            ([.cancelled(error), .succeeded], .cancelled),
            ([.cancelled(error), .timedOut(error)], .timedOut),
        ])
    func theJobsOutcomeFollowsFromItsItems(_ outcomes: [PrefetchSchedule.Outcome], _ state: JobState) {
        var (schedule, runs) = Self.opened(2, Self.job("a", items: 2))

        for (run, outcome) in zip(runs, outcomes) { _ = schedule.ended(run, outcome, at: Self.moment(7)) }

        let job = schedule.progress(of: "a", at: Self.moment(7))?.record
        #expect(job?.state == state)
        #expect(job?.finishedAt == Self.moment(7).wall)
        #expect((job?.error == nil) == (state == .succeeded))
    }

    @Test("A failed item does not stop other items")
    func anItemThatFailsHoldsUpNoOther() {
        var (schedule, first) = Self.opened(1, Self.job("a", items: 2))

        let next = schedule.ended(first[0], .failed(Self.error), at: Self.moment()).starts

        #expect(next.map(\.item) == [1])
        #expect(schedule.state(of: "a") == .running)
    }

    @Test("A changed asset is restarted twice, then the item fails")
    func aChangedAssetIsBegunAgainTwiceThenTheItemFails() {
        var (schedule, runs) = Self.opened(1, Self.job("a"))
        var attempts: [Int?] = []
        for _ in 0..<3 {
            attempts.append(schedule.item(of: runs[0])?.attempts)
            runs = schedule.ended(runs[0], .changed(Self.error), at: Self.moment()).starts + runs
        }

        #expect(attempts == [1, 2, 3])
        #expect(schedule.state(of: "a") == .failed)
        #expect(schedule.activeCount == 0)
    }

    @Test("Cancelling stops running items and never starts the rest")
    func cancellingStopsWhatRunsAndNeverStartsTheRest() {
        var (schedule, first) = Self.opened(1, Self.job("a", items: 3), Self.job("b"))

        let actions = schedule.cancel("a", at: Self.moment(2))

        #expect(actions == [.stop(first[0]), .changed(job: "a")])
        #expect(schedule.progress(of: "a", at: Self.moment(2))?.tally[.cancelled] == 3)
        #expect(schedule.state(of: "a") == .cancelled)
        let next = schedule.ended(first[0], .interrupted, at: Self.moment(3))
        #expect(next.starts.map(\.job) == ["b"])
        #expect(schedule.state(of: "a") == .cancelled)
    }

    @Test("A timeout runs from the start of the first item")
    func aTimeoutRunsFromTheFirstItemsStart() {
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.add(Self.job("a", items: 2, timeout: .seconds(10)), at: Self.moment())
        #expect(schedule.nextLimit(at: Self.moment(50)) == nil)

        let first = schedule.open(at: Self.moment(50)).starts

        #expect(schedule.nextLimit(at: Self.moment(53)) == .seconds(7))
        #expect(schedule.expire(at: Self.moment(59)).isEmpty)
        #expect(schedule.expire(at: Self.moment(60)) == [.stop(first[0]), .changed(job: "a")])
        let progress = schedule.progress(of: "a", at: Self.moment(60))
        #expect(progress?.record.state == .timedOut)
        #expect(progress?.record.error?.code == "upstreamTimedOut")
        #expect(progress?.tally[.timedOut] == 2)
    }

    @Test("A deadline ends even a job that never started")
    func aDeadlineEndsEvenAJobThatNeverBegan() {
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.add(Self.job("a", deadlineAt: Self.moment(5).wall), at: Self.moment())

        _ = schedule.expire(at: Self.moment(5))

        #expect(schedule.state(of: "a") == .timedOut)
    }

    @Test("A restored job has only its remaining time")
    func aJobTakenUpAgainHasOnlyTheTimeThatIsLeft() {
        var record = Self.job("a", timeout: .seconds(10))
        record.state = .running
        record.items[0].state = .running
        record.startedAt = Self.moment(0).wall
        var schedule = PrefetchSchedule(concurrency: 1)

        _ = schedule.add(record, at: Self.moment(4))
        let runs = schedule.open(at: Self.moment(4)).starts

        #expect(runs.count == 1)
        #expect(schedule.nextLimit(at: Self.moment(4)) == .seconds(6))
    }

    @Test("Closing requeues running items")
    func closingPutsWhatRunsBackIntoTheQueue() {
        var (schedule, runs) = Self.opened(2, Self.job("a", items: 3))
        _ = schedule.takeChanges()

        let actions = schedule.close(at: Self.moment(1))

        #expect(Set(actions) == Set(runs.map { .stop($0) } + [.changed(job: "a")]))
        let change = schedule.takeChanges().first
        #expect(change?.job.state == .queued)
        #expect(change?.items.map(\.state) == [.queued, .queued])
        #expect(schedule.ended(runs[0], .interrupted, at: Self.moment(2)).isEmpty)
    }

    @Test("Progress reported after the end of an item is ignored")
    func whatARunTellsAfterItsItemEndedCountsForNothing() {
        var (schedule, runs) = Self.opened(1, Self.job("a"))
        _ = schedule.cancel("a", at: Self.moment())

        let actions = schedule.progressed(runs[0], .init(bytesFromUpstream: 5), at: Self.moment())

        #expect(actions.isEmpty)
        #expect(schedule.progress(of: "a", at: Self.moment())?.tally.bytesFromUpstream == 0)
    }

    @Test("Progress adds up and gives the rate")
    func progressAddsUpAndTellsTheRate() {
        var (schedule, runs) = Self.opened(2, Self.job("a", items: 2))
        _ = schedule.progressed(
            runs[0], .init(bytesTotal: 100, bytesFromCache: 10, bytesFromUpstream: 20), at: Self.moment(2))
        let half = schedule.progress(of: "a", at: Self.moment(2))?.tally
        #expect(half?.bytesTotal == 100 && half?.itemsUnknown == 1)

        _ = schedule.progressed(runs[1], .init(bytesTotal: 50, bytesFromUpstream: 20), at: Self.moment(4))

        let progress = schedule.progress(of: "a", at: Self.moment(4))
        #expect(progress?.tally.bytesTotal == 150 && progress?.tally.itemsUnknown == 0)
        #expect(progress?.tally.bytesFromCache == 10)
        #expect(progress?.tally.bytesFromUpstream == 40)
        #expect(progress?.bytesPerSecond == 10)
    }

    @Test("Every change has a higher version")
    func everyChangeHasALaterVersion() {
        var (schedule, runs) = Self.opened(1, Self.job("a"))
        var versions: [Int64] = []
        for bytes in 1...5 as ClosedRange<Int64> {
            _ = schedule.progressed(runs[0], .init(bytesFromUpstream: bytes), at: Self.moment())
            versions += [schedule.progress(of: "a", at: Self.moment())?.version].compactMap { $0 }
        }

        #expect(versions.count == 5)
        #expect(zip(versions, versions.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test("Only changes are persisted, and a failed write is repeated")
    func onlyWhatChangedIsWrittenDownAndWhatFailedToBeIsTakenAgain() {
        var (schedule, runs) = Self.opened(1, Self.job("a", items: 3))

        let changes = schedule.takeChanges()

        #expect(changes.map { $0.items.map(\.index) } == [[runs[0].item]])
        #expect(schedule.takeChanges().isEmpty)
        schedule.restore(changes)
        #expect(schedule.takeChanges() == changes)
    }

    @Test("A cancelled job is saved without its queued items")
    func theEndOfAJobIsSavedOnce() throws {
        var (schedule, runs) = Self.opened(1, Self.job("a", items: 1000))
        _ = schedule.takeChanges()

        _ = schedule.cancel("a", at: Self.moment(1))

        let record = try #require(schedule.endedEarly("a"))
        #expect(record.state == .cancelled && record.items.isEmpty)
        let changes = schedule.takeChanges()
        #expect(changes.map(\.job) == [record])
        #expect(changes.map { $0.items.map(\.index) } == [[runs[0].item]])
        let tally = schedule.progress(of: "a", at: Self.moment(1))?.tally
        #expect(tally?[.cancelled] == 1000 && tally?.itemsTotal == 1000)
    }

    @Test("A job that ended with its last item has ended in the catalog when all its items have")
    func theEndIsSavedWithTheLastItem() {
        var (schedule, runs) = Self.opened(3, Self.job("a", items: 3))
        for run in runs { _ = schedule.ended(run, .succeeded, at: Self.moment()) }

        let changes = [schedule.takeChanges(atMost: 2), schedule.takeChanges(atMost: 2)].flatMap(\.self)

        #expect(changes.map(\.items.count) == [2, 1])
        #expect(changes.map(\.job.state) == [.running, .succeeded])
        #expect(schedule.takeChanges().isEmpty)
    }

    @Test("A job is refused while all jobs have too many unfinished items, and superseded jobs make room")
    func unfinishedItemsAreLimited() throws {
        let limits = PrefetchSchedule.Limits(unfinishedItems: 5)
        var (schedule, runs) = Self.opened(1, Self.job("a", items: 4, queue: "q"))
        func refusal(_ job: JobRecord) -> CacheError.Code? {
            do throws(CacheError) { try schedule.checkRoom(for: job, within: limits) } catch { return error.code }
            return nil
        }
        #expect(refusal(Self.job("b")) == nil && refusal(Self.job("b", items: 2)) == .overloaded)
        var superseding = Self.job("b", items: 5, queue: "q")
        #expect(refusal(superseding) == .overloaded)
        superseding.supersedes = true
        #expect(refusal(superseding) == nil)

        _ = schedule.ended(runs[0], .succeeded, at: Self.moment())

        #expect(schedule.unfinishedCount == 3 && refusal(Self.job("b", items: 2)) == nil)
    }

    @Test("A finished job is dropped once it is persisted")
    func aFinishedJobIsForgottenOnceItIsWrittenDown() {
        var (schedule, runs) = Self.opened(1, Self.job("a"))
        _ = schedule.ended(runs[0], .succeeded, at: Self.moment())

        schedule.forgetFinished()
        #expect(schedule.contains("a"))
        _ = schedule.takeChanges()
        schedule.forgetFinished()

        #expect(!schedule.contains("a"))
    }

    @Test("A restored job with all items finished is concluded")
    func aJobWhoseItemsAreAllFinishedIsConcludedWhenItIsTakenUp() {
        var record = Self.job("a", items: 2)
        record.state = .running
        record.items[0].state = .succeeded
        record.items[1].state = .succeeded
        var schedule = PrefetchSchedule(concurrency: 1)

        _ = schedule.add(record, at: Self.moment())

        #expect(schedule.state(of: "a") == .succeeded)
    }

    @Test("A job can be added only once")
    func aJobCanBeTakenInOnlyOnce() {
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.add(Self.job("a"), at: Self.moment())

        #expect(schedule.add(Self.job("a", items: 9), at: Self.moment()) == nil)
    }
}

extension [PrefetchSchedule.Action] {
    var starts: [PrefetchSchedule.Run] {
        compactMap { action in
            if case .start(let run) = action { run } else { nil }
        }
    }
}
