import Testing

@testable import CacheCore

@Suite struct S3FIFOPolicyTests {
    private func policy(reads: Int = 1, startsWarm: Bool = false) -> S3FIFOPolicy {
        S3FIFOPolicy(capacityBytes: 100, rules: .init(promotionReads: reads, startsWarm: startsWarm))
    }

    private func names(_ victims: [Victim]) -> [String] { victims.map(\.segment.name) }

    @Test("Segments with enough reads are kept, and the remaining segments are evicted")
    func whatIsReadOftenEnoughIsKeptAndTheRestGoes() {
        for (reads, expected) in [(1, ["C"]), (2, ["B", "C"]), (3, ["A", "B", "C"])] {
            var policy = policy(reads: reads)
            for name in ["A", "B", "C"] { policy.admit(SegmentID(named: name), bytes: 10) }
            for name in ["A", "A", "B"] { policy.touch(SegmentID(named: name)) }

            let victims = policy.victims(toFree: Int64(10 * expected.count)) { _ in false }

            #expect(names(victims) == expected)
        }
    }

    @Test("A segment readmitted soon outlasts new segments")
    func whatComesBackSoonOutlastsWhatIsNew() {
        var policy = policy()
        policy.admit(SegmentID(named: "A"), bytes: 10)
        for victim in policy.victims(toFree: 10, sparing: { _ in false }) { policy.remove(victim.segment) }

        policy.admit(SegmentID(named: "A"), bytes: 10)
        policy.admit(SegmentID(named: "B"), bytes: 10)

        let victims = policy.victims(toFree: 10) { _ in false }
        #expect(names(victims) == ["B"])
    }

    @Test("A segment removed without being chosen is forgotten")
    func whatIsRemovedWithoutBeingChosenIsForgotten() {
        var policy = policy()
        policy.admit(SegmentID(named: "A"), bytes: 10)
        policy.remove(SegmentID(named: "A"))

        policy.admit(SegmentID(named: "A"), bytes: 10)
        policy.admit(SegmentID(named: "B"), bytes: 10)

        let victims = policy.victims(toFree: 10) { _ in false }
        #expect(names(victims) == ["A"])
    }

    @Test("An expected segment stays in the ghost queue through the next evictions", arguments: [false, true])
    func whatIsExpectedIsRememberedThroughTheEvictionsThatMakeRoom(isExpected: Bool) {
        var policy = policy()
        for name in ["A", "B", "C"] {
            policy.admit(SegmentID(named: name), bytes: 45)
            if name == "C", isExpected { policy.expect(SegmentID(named: "A")) }
            for victim in policy.victims(toFree: 45, sparing: { _ in false }) { policy.remove(victim.segment) }
        }

        policy.admit(SegmentID(named: "A"), bytes: 10)
        policy.admit(SegmentID(named: "E"), bytes: 10)

        let victims = policy.victims(toFree: 10) { _ in false }
        #expect(names(victims) == [isExpected ? "E" : "A"])
    }

    @Test(
        "A cold cache fills the main queue once the small queue is full",
        arguments: [(true, ["A", "C"]), (false, ["A", "B"])])
    func whatAnEmptyCacheTakesInStartsInTheMainQueueOnceTheSmallOneIsFull(startsWarm: Bool, expected: [String]) {
        var policy = policy(reads: 2, startsWarm: startsWarm)
        for name in ["A", "B", "C"] { policy.admit(SegmentID(named: name), bytes: 30) }
        policy.touch(SegmentID(named: "B"))

        let victims = policy.victims(toFree: 60) { _ in false }
        #expect(names(victims) == expected)
    }

    @Test("If the main queue is fully spared, the small queue is evicted")
    func whereNothingOfTheMainQueueMayGoTheSmallOneGivesWay() {
        var policy = policy()
        for name in ["A", "B", "C", "D"] { policy.admit(SegmentID(named: name), bytes: 50) }
        for name in ["A", "B"] { policy.touch(SegmentID(named: name)) }
        for victim in policy.victims(toFree: 50, sparing: { _ in false }) { policy.remove(victim.segment) }
        var other = policy
        let kept: Set = [SegmentID(named: "A"), SegmentID(named: "B")]

        let spared = policy.victims(toFree: 50) { kept.contains($0) }
        let free = other.victims(toFree: 50) { _ in false }

        #expect(names(spared) == ["D"])
        #expect(names(free) == ["A"])
    }
}
