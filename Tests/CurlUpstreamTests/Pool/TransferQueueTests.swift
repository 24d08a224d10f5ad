import CacheCore
import Testing

struct TransferQueueTests {
    let now = ContinuousClock.now

    private func entry(
        _ ticket: UInt64, _ priority: TransferPriority = .live, origin: String = "a", limit: Int = 100,
        slack: Duration = .zero, notBefore: ContinuousClock.Instant? = nil
    ) -> TransferQueue.Entry {
        .init(
            ticket: ticket, origin: origin, originLimit: limit, priority: priority, queued: now, slack: slack,
            notBefore: notBefore)
    }

    /// Holds the queue by reference, because an expectation cannot mutate a value.
    @dynamicMemberLookup
    private final class Box {
        var queue: TransferQueue

        init(_ limit: Int) { queue = TransferQueue(limit: limit) }

        subscript<Value>(dynamicMember path: KeyPath<TransferQueue, Value>) -> Value { queue[keyPath: path] }
        func add(_ entry: TransferQueue.Entry) { queue.add(entry) }
        func promote(_ ticket: UInt64, to priority: TransferPriority, at now: ContinuousClock.Instant) {
            queue.promote(ticket, to: priority, at: now)
        }
        func remove(_ ticket: UInt64) -> Bool { queue.remove(ticket) }
        func removeAll() -> [UInt64] { queue.removeAll() }
        func admit(at now: ContinuousClock.Instant) -> [UInt64] { queue.admit(at: now) }
        func paused(_ ticket: UInt64) { queue.paused(ticket) }
        func resumes(_ ticket: UInt64, at now: ContinuousClock.Instant) { queue.resumes(ticket, at: now) }
        func finished(_ ticket: UInt64, at now: ContinuousClock.Instant) { queue.finished(ticket, at: now) }
    }

    private func queue(_ limit: Int, _ entries: TransferQueue.Entry...) -> Box {
        let queue = Box(limit)
        for entry in entries { queue.add(entry) }
        return queue
    }

    @Test("Higher classes start first, in arrival order within a class")
    func urgentClassesGoFirstAndEachInTheOrderTheyCame() {
        let queue = queue(8, entry(1, .prefetch), entry(2, .readAhead), entry(3), entry(4, .readAhead), entry(5))
        #expect(queue.admit(at: now) == [3, 5, 2, 4, 1])
    }

    @Test("The global limit holds")
    func theLimitInAllHolds() {
        let queue = queue(2, entry(1), entry(2), entry(3))
        #expect(queue.admit(at: now) == [1, 2])
        #expect(queue.admit(at: now) == [])
        queue.finished(1, at: now)
        #expect(queue.admit(at: now) == [3])
        #expect(queue.activeCount == 2)
        #expect(queue.queuedCount == 0)
    }

    @Test("An origin at its limit does not delay other origins")
    func anOriginAtItsLimitHoldsUpNobodyElse() {
        let queue = queue(8, entry(1, limit: 1), entry(2, limit: 1), entry(3, .prefetch, origin: "b"))
        #expect(queue.admit(at: now) == [1, 3])
        #expect(queue.queuedByOrigin == ["a": 1])
        #expect(queue.activeByOrigin == ["a": 1, "b": 1])
        queue.finished(3, at: now)
        #expect(queue.admit(at: now) == [])
        queue.finished(1, at: now)
        #expect(queue.admit(at: now) == [2])
    }

    @Test("Prefetch leaves slots for live reads")
    func prefetchLeavesRoomForLiveReads() {
        let queue = queue(4, entry(1, .prefetch), entry(2, .prefetch), entry(3, .prefetch), entry(4, .prefetch))
        #expect(queue.admit(at: now) == [1, 2, 3])
        queue.add(entry(5))
        #expect(queue.admit(at: now) == [5])
        queue.finished(5, at: now)
        #expect(queue.admit(at: now) == [])
    }

    @Test("The slot of a live transfer is reserved for the next one while prefetch waits")
    func thePlaceOfALiveTransferIsKeptForTheNextOneWhilePrefetchWaits() {
        let queue = queue(8, entry(1, limit: 2), entry(2, limit: 2), entry(3, .prefetch, limit: 2))
        #expect(queue.admit(at: now) == [1, 2])
        queue.finished(1, at: now)
        #expect(queue.admit(at: now) == [])
        #expect(queue.nextDue == now + TransferQueue.keepingLimit)
        queue.add(entry(4, limit: 2))
        #expect(queue.admit(at: now) == [4])
        #expect(queue.nextDue == now + TransferQueue.agingLimit, "no slot is reserved, and prefetch waits")
        queue.finished(2, at: now)
        queue.add(entry(5, .prefetch, origin: "b"))
        #expect(queue.admit(at: now) == [5], "no slot of another origin may be reserved")
        #expect(queue.admit(at: now + TransferQueue.keepingLimit) == [3])
        queue.finished(4, at: now)
        queue.add(entry(6, .prefetch, limit: 2))
        #expect(
            queue.nextDue == now + TransferQueue.agingLimit, "no slot may be reserved if no transfer waited for it")
    }

    @Test("The time from which waiting prefetch counts as live is due")
    func aTimeOfAgingIsDue() {
        let queue = queue(8, entry(8, .prefetch))
        for ticket in 1...7 as ClosedRange<UInt64> { queue.add(entry(ticket)) }
        #expect(queue.admit(at: now) == [1, 2, 3, 4, 5, 6, 7], "the last slot is closed to prefetch")
        #expect(queue.nextDue == now + TransferQueue.agingLimit)
        #expect(queue.admit(at: now + TransferQueue.agingLimit) == [8])
        #expect(queue.nextDue == nil)
    }

    @Test("Prefetch leaves a slot at its origin too")
    func prefetchLeavesRoomAtItsOriginToo() {
        let queue = queue(64, entry(1, .prefetch, limit: 2), entry(2, .prefetch, limit: 2))
        #expect(queue.admit(at: now) == [1])
        queue.add(entry(3, limit: 2))
        #expect(queue.admit(at: now) == [3])
    }

    @Test("Prefetch can use the only slot")
    func prefetchMayHaveTheOnlyPlace() {
        let queue = queue(1, entry(1, .prefetch))
        #expect(queue.admit(at: now) == [1])
    }

    @Test("A delayed transfer waits without delaying other transfers")
    func aDelayedTransferWaitsItsTimeWithoutHoldingUpOthers() {
        let later = now + .seconds(1)
        let queue = queue(1, entry(1, notBefore: later), entry(2))
        #expect(queue.admit(at: now) == [2])
        #expect(queue.nextDue == later)
        queue.finished(2, at: now)
        #expect(queue.admit(at: now + .milliseconds(999)) == [])
        #expect(queue.admit(at: later) == [1])
        #expect(queue.nextDue == nil)
    }

    @Test("A promoted transfer joins the higher class")
    func aPromotedTransferJoinsTheUrgentOnes() {
        let queue = queue(1, entry(1), entry(2, .readAhead), entry(3, .prefetch))
        #expect(queue.admit(at: now) == [1])
        queue.promote(3, to: .live, at: now)
        queue.promote(2, to: .prefetch, at: now)
        queue.finished(1, at: now)
        #expect(queue.admit(at: now) == [3])
        queue.finished(3, at: now)
        #expect(queue.admit(at: now) == [2])
    }

    @Test("Promoting a running prefetch frees its prefetch slot")
    func aRunningTransferThatIsPromotedGivesItsPrefetchPlaceBack() {
        let queue = queue(4, entry(1, .prefetch), entry(2, .prefetch), entry(3, .prefetch), entry(4, .prefetch))
        _ = queue.admit(at: now)
        queue.promote(1, to: .live, at: now)
        #expect(queue.admit(at: now) == [4])
        for ticket in 1...4 { queue.finished(UInt64(ticket), at: now) }
        #expect(queue.activeByOrigin == [:])
    }

    @Test("A removed transfer is never admitted")
    func aRemovedTransferIsNeverAdmitted() {
        let queue = queue(1, entry(1), entry(2))
        #expect(queue.remove(1))
        #expect(!queue.remove(1))
        #expect(queue.admit(at: now) == [2])
        #expect(!queue.remove(2))
        queue.add(entry(3))
        #expect(queue.removeAll() == [3])
        #expect(queue.queuedCount == 0)
    }

    @Test("The earliest deadline starts first within a class")
    func theEarliestDeadlineGoesFirstWithinAClass() {
        let queue = queue(
            8, entry(1, slack: .seconds(3)), entry(2, slack: .seconds(1)), entry(3, slack: .seconds(1)),
            entry(4, .readAhead), entry(5, origin: "b", slack: .seconds(2)))
        #expect(queue.admit(at: now) == [2, 3, 5, 1, 4])
    }

    @Test("A promoted transfer has no slack")
    func aPromotedTransferIsNeededAtOnce() {
        let queue = queue(
            1, entry(1, slack: .seconds(2)), entry(2, .prefetch, slack: .seconds(60)), entry(3, .readAhead))
        queue.promote(2, to: .live, at: now + .seconds(1))
        #expect(queue.admit(at: now) == [2])
    }

    @Test("Aged prefetch is admitted among live reads")
    func prefetchThatHasWaitedLongGoesAmongTheLiveReads() {
        let aged = now + TransferQueue.agingLimit
        let queue = queue(1, entry(1, .prefetch), entry(2, .readAhead), entry(3, slack: .seconds(60)))
        #expect(queue.admit(at: aged - .nanoseconds(1)) == [3])
        queue.add(entry(4, slack: .seconds(60)))
        queue.finished(3, at: now)
        #expect(queue.admit(at: aged) == [1])
        queue.finished(1, at: now)
        #expect(queue.admit(at: aged) == [4])
    }

    @Test("Aged prefetch still leaves slots for live reads")
    func agedPrefetchStillLeavesRoomForLiveReads() {
        let queue = queue(4, entry(1, .prefetch), entry(2, .prefetch), entry(3, .prefetch), entry(4, .prefetch))
        let aged = now + TransferQueue.agingLimit
        #expect(queue.admit(at: aged) == [1, 2, 3])
        queue.add(entry(5))
        #expect(queue.admit(at: aged) == [5])
    }

    @Test("A delayed transfer ages from the moment it could have started")
    func whatWasDelayedAgesFromTheMomentItCouldHaveStarted() {
        let due = now + .seconds(60)
        let queue = queue(1, entry(1), entry(2, .prefetch, notBefore: due), entry(3, slack: .seconds(300)))
        #expect(queue.admit(at: due) == [1])
        queue.finished(1, at: now)
        #expect(queue.admit(at: due + .seconds(29)) == [3])
        queue.add(entry(4, slack: .seconds(300)))
        queue.finished(3, at: now)
        #expect(queue.admit(at: due + .seconds(30)) == [2])
    }

    @Test("A paused transfer frees its slot and resumes before new ones of its class")
    func aPausedTransferGivesItsPlaceBackAndGoesOnBeforeNewOnesOfItsClass() {
        let queue = queue(1, entry(1, .readAhead), entry(2, .readAhead), entry(3, .readAhead))
        #expect(queue.admit(at: now) == [1])
        queue.paused(1)
        #expect(queue.activeByOrigin == [:])
        #expect(queue.pausedCount == 1)
        #expect(queue.admit(at: now) == [2])
        queue.resumes(1, at: now + .seconds(1))
        #expect(queue.queuedByOrigin == ["a": 2])
        #expect(queue.admit(at: now) == [])
        queue.add(entry(4))
        queue.finished(2, at: now)
        #expect(queue.admit(at: now) == [4], "a more urgent class must precede a resumed transfer")
        queue.finished(4, at: now)
        #expect(queue.admit(at: now) == [1])
        #expect(queue.pausedCount == 0)
    }

    @Test("A transfer waiting to resume can be paused again")
    func whatWaitsToGoOnMayBePausedAgain() {
        let queue = queue(1, entry(1), entry(2))
        _ = queue.admit(at: now)
        queue.paused(1)
        _ = queue.admit(at: now)
        queue.resumes(1, at: now)
        #expect(!queue.remove(1), "the queue must not remove a started transfer")
        queue.paused(1)
        queue.finished(2, at: now)
        #expect(queue.admit(at: now) == [])
        queue.finished(1, at: now)
        #expect(queue.pausedCount == 0 && queue.queuedCount == 0 && queue.activeCount == 0)
    }

    @Test("The latest limit of an origin applies")
    func anOriginIsHeldToTheLimitItWasLastGiven() {
        let queue = queue(8, entry(1, limit: 1), entry(2, limit: 1))
        #expect(queue.admit(at: now) == [1])
        queue.add(entry(3, limit: 3))
        #expect(queue.admit(at: now) == [2, 3])
    }
}

struct BackoffTests {
    @Test("The ceiling doubles up to the cap")
    func theCeilingDoublesUpToTheCap() {
        let ceilings = (0..<8).map { Backoff.ceiling(beforeRetry: $0).wholeMilliseconds }
        #expect(ceilings == [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
        #expect(Backoff.ceiling(beforeRetry: .max) == .seconds(10))
    }

    @Test("The random source spreads the delay below the ceiling", arguments: [(0.0, 0), (0.5, 400), (0.25, 200)])
    func chanceSpreadsTheDelayBelowTheCeiling(_ random: Double, _ milliseconds: Int64) {
        #expect(Backoff.delay(beforeRetry: 2, random: random).wholeMilliseconds == milliseconds)
    }
}
