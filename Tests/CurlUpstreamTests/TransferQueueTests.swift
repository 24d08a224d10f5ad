import CacheCore
import Testing

struct TransferQueueTests {
    let now = ContinuousClock.now

    private func entry(
        _ ticket: UInt64, _ priority: TransferPriority = .live, origin: String = "a", limit: Int = 100,
        notBefore: ContinuousClock.Instant? = nil
    ) -> TransferQueue.Entry {
        .init(ticket: ticket, origin: origin, originLimit: limit, priority: priority, notBefore: notBefore)
    }

    /// A queue behind a reference, because an expectation cannot change a value.
    @dynamicMemberLookup
    private final class Box {
        var queue: TransferQueue

        init(_ limit: Int) { queue = TransferQueue(limit: limit) }

        subscript<Value>(dynamicMember path: KeyPath<TransferQueue, Value>) -> Value { queue[keyPath: path] }
        func add(_ entry: TransferQueue.Entry) { queue.add(entry) }
        func promote(_ ticket: UInt64, to priority: TransferPriority) { queue.promote(ticket, to: priority) }
        func remove(_ ticket: UInt64) -> Bool { queue.remove(ticket) }
        func removeAll() -> [UInt64] { queue.removeAll() }
        func admit(at now: ContinuousClock.Instant) -> [UInt64] { queue.admit(at: now) }
        func finished(_ ticket: UInt64) { queue.finished(ticket) }
        func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? { queue.nextDue(after: now) }
    }

    private func queue(_ limit: Int, _ entries: TransferQueue.Entry...) -> Box {
        let queue = Box(limit)
        for entry in entries { queue.add(entry) }
        return queue
    }

    @Test func urgentClassesGoFirstAndEachInTheOrderTheyCame() {
        let queue = queue(8, entry(1, .prefetch), entry(2, .readAhead), entry(3), entry(4, .readAhead), entry(5))
        #expect(queue.admit(at: now) == [3, 5, 2, 4, 1])
    }

    @Test func theLimitInAllHolds() {
        let queue = queue(2, entry(1), entry(2), entry(3))
        #expect(queue.admit(at: now) == [1, 2])
        #expect(queue.admit(at: now) == [])
        queue.finished(1)
        #expect(queue.admit(at: now) == [3])
        #expect(queue.activeCount == 2)
        #expect(queue.queuedCount == 0)
    }

    @Test func anOriginAtItsLimitHoldsUpNobodyElse() {
        let queue = queue(8, entry(1, limit: 1), entry(2, limit: 1), entry(3, .prefetch, origin: "b"))
        #expect(queue.admit(at: now) == [1, 3])
        #expect(queue.queuedByOrigin == ["a": 1])
        #expect(queue.activeByOrigin == ["a": 1, "b": 1])
        queue.finished(3)
        #expect(queue.admit(at: now) == [])
        queue.finished(1)
        #expect(queue.admit(at: now) == [2])
    }

    @Test func prefetchLeavesRoomForLiveReads() {
        let queue = queue(4, entry(1, .prefetch), entry(2, .prefetch), entry(3, .prefetch), entry(4, .prefetch))
        #expect(queue.admit(at: now) == [1, 2, 3])
        queue.add(entry(5))
        #expect(queue.admit(at: now) == [5])
        queue.finished(5)
        #expect(queue.admit(at: now) == [])
    }

    @Test func prefetchLeavesRoomAtItsOriginToo() {
        let queue = queue(64, entry(1, .prefetch, limit: 2), entry(2, .prefetch, limit: 2))
        #expect(queue.admit(at: now) == [1])
        queue.add(entry(3, limit: 2))
        #expect(queue.admit(at: now) == [3])
    }

    @Test func prefetchMayHaveTheOnlyPlace() {
        let queue = queue(1, entry(1, .prefetch))
        #expect(queue.admit(at: now) == [1])
    }

    @Test func aDelayedTransferWaitsItsTimeWithoutHoldingUpOthers() {
        let later = now + .seconds(1)
        let queue = queue(1, entry(1, notBefore: later), entry(2))
        #expect(queue.admit(at: now) == [2])
        #expect(queue.nextDue(after: now) == later)
        queue.finished(2)
        #expect(queue.admit(at: now + .milliseconds(999)) == [])
        #expect(queue.admit(at: later) == [1])
        #expect(queue.nextDue(after: later) == nil)
    }

    @Test func aPromotedTransferJoinsTheUrgentOnes() {
        let queue = queue(1, entry(1), entry(2, .readAhead), entry(3, .prefetch))
        #expect(queue.admit(at: now) == [1])
        queue.promote(3, to: .live)
        queue.promote(2, to: .prefetch)
        queue.finished(1)
        #expect(queue.admit(at: now) == [3])
        queue.finished(3)
        #expect(queue.admit(at: now) == [2])
    }

    @Test func aRunningTransferThatIsPromotedGivesItsPrefetchPlaceBack() {
        let queue = queue(4, entry(1, .prefetch), entry(2, .prefetch), entry(3, .prefetch), entry(4, .prefetch))
        _ = queue.admit(at: now)
        queue.promote(1, to: .live)
        #expect(queue.admit(at: now) == [4])
        for ticket in 1...4 { queue.finished(UInt64(ticket)) }
        #expect(queue.activeByOrigin == [:])
    }

    @Test func aRemovedTransferIsNeverAdmitted() {
        let queue = queue(1, entry(1), entry(2))
        #expect(queue.remove(1))
        #expect(!queue.remove(1))
        #expect(queue.admit(at: now) == [2])
        #expect(!queue.remove(2))
        queue.add(entry(3))
        #expect(queue.removeAll() == [3])
        #expect(queue.queuedCount == 0)
    }

    @Test func limitsHoldWhateverHappens() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = Generator(state: seed)
        var queue = TransferQueue(limit: 5)
        var active: [UInt64: String] = [:]
        var ended: Set<UInt64> = []
        for ticket in 1...2000 as ClosedRange<UInt64> {
            let origin = ["a", "b", "c"].randomElement(using: &random) ?? "a"
            let priority = TransferPriority.allCases.randomElement(using: &random) ?? .live
            queue.add(entry(ticket, priority, origin: origin, limit: 3))
            if Bool.random(using: &random) { queue.promote(UInt64.random(in: 1...ticket, using: &random), to: .live) }
            if let done = active.keys.sorted().randomElement(using: &random), Bool.random(using: &random) {
                queue.finished(done)
                active[done] = nil
                ended.insert(done)
            }
            let before = queue.queuedByOrigin
            for admitted in queue.admit(at: now) {
                #expect(active[admitted] == nil && !ended.contains(admitted), "seed \(seed)")
                active[admitted] = ""
            }
            #expect(active.count <= 5, "seed \(seed)")
            #expect(queue.activeCount == active.count, "seed \(seed)")
            #expect(queue.activeByOrigin.values.allSatisfy { $0 <= 3 }, "seed \(seed)")
            #expect(before.values.reduce(0, +) >= queue.queuedCount, "seed \(seed)")
        }
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }
}

struct BackoffTests {
    @Test func theCeilingDoublesUpToTheCap() {
        let backoff = Backoff()
        let ceilings = (0..<8).map { backoff.ceiling(beforeRetry: $0).wholeMilliseconds }
        #expect(ceilings == [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
        #expect(backoff.ceiling(beforeRetry: .max) == .seconds(10))
    }

    @Test(arguments: [(0.0, 0), (0.5, 400), (0.25, 200)])
    func chanceSpreadsTheDelayBelowTheCeiling(_ chance: Double, _ milliseconds: Int64) {
        #expect(Backoff().delay(beforeRetry: 2, chance: chance).wholeMilliseconds == milliseconds)
    }
}
