import Testing

@testable import CacheCore
import TestChance

/// The contract of every eviction policy.
@Suite struct EvictionPolicyTests {
    @Test("Knows its segments and chooses victims only from them", arguments: EvictionAlgorithm.allCases)
    func knowsWhatIsInItAndChoosesOnlyFromThat(algorithm: EvictionAlgorithm) {
        var (random, seed) = SeededRandom.announced()
        var policy = algorithm.policy(capacityBytes: 1000)
        var model: [SegmentID: Int64] = [:]
        for _ in 0..<4000 {
            let segment = SegmentID(asset: AssetID(high: 7, low: 9), index: Int32.random(in: 0..<40, using: &random))
            let bytes = Int64.random(in: 0..<100, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                policy.admit(segment, bytes: bytes)
                model[segment] = bytes
            case 2:
                policy.resize(segment, bytes: bytes)
                if model[segment] != nil { model[segment] = bytes }
            case 3:
                policy.remove(segment)
                model[segment] = nil
            case 4:
                let isKnown = policy.touch(segment)
                #expect(isKnown == (model[segment] != nil), "seed \(seed)")
            default:
                let missing = Int64.random(in: -10..<3000, using: &random)
                let spared = Set(model.keys.filter { _ in Bool.random(using: &random) })
                let victims = policy.victims(toFree: missing) { spared.contains($0) }
                check(victims, toFree: missing, from: model, sparing: spared, "\(algorithm), seed \(seed)")
                for victim in victims.prefix(2) {
                    policy.remove(victim.segment)
                    model[victim.segment] = nil
                }
            }
            #expect(policy.bytes(of: segment) == model[segment], "seed \(seed)")
            #expect(policy.count == model.count, "seed \(seed)")
            #expect(policy.usedBytes == model.values.reduce(0, +), "seed \(seed)")
        }
    }

    /// Checks victims: enough bytes unless no candidate is left, no duplicates, no spared segments, no excess.
    private func check(
        _ victims: [Victim], toFree missing: Int64, from model: [SegmentID: Int64], sparing spared: Set<SegmentID>,
        _ comment: Comment
    ) {
        let chosen = Set(victims.map(\.segment))
        let freed = victims.reduce(0) { $0 + $1.bytes }
        #expect(chosen.count == victims.count, comment)
        #expect(victims.allSatisfy { model[$0.segment] == $0.bytes && !spared.contains($0.segment) }, comment)
        #expect(freed >= missing || chosen.union(spared) == Set(model.keys), comment)
        #expect(freed - (victims.last?.bytes ?? 0) < max(1, missing), comment)
    }

    @Test("Ignores unknown segments", arguments: EvictionAlgorithm.allCases)
    func passesOverWhatItDoesNotKnow(algorithm: EvictionAlgorithm) {
        var policy = algorithm.policy(capacityBytes: 100)
        let segment = SegmentID(named: "A")

        policy.expect(segment)
        policy.resize(segment, bytes: 5)
        policy.remove(segment)
        let isKnown = policy.touch(segment)
        let victims = policy.victims(toFree: .max) { _ in false }

        #expect(!isKnown)
        #expect(policy.bytes(of: segment) == nil)
        #expect(policy.count == 0)
        #expect(policy.usedBytes == 0)
        #expect(victims.isEmpty)
    }

    @Test("Accepts any size and any capacity", arguments: EvictionAlgorithm.allCases)
    func takesAnySizeAndAnyCapacity(algorithm: EvictionAlgorithm) {
        for capacity in [Int64.min, -1, 0, 1, 9, .max] {
            var policy = algorithm.policy(capacityBytes: capacity)
            for (name, bytes) in [("A", Int64.min), ("B", -1), ("C", 0), ("D", .max), ("E", 200), ("F", .max)] {
                policy.admit(SegmentID(named: name), bytes: bytes)
                policy.touch(SegmentID(named: name))
            }
            let calm = policy.victims(toFree: .min) { _ in false }
            let some = policy.victims(toFree: 1) { _ in false }
            policy.capacityBytes = 10
            let all = policy.victims(toFree: .max) { _ in false }
            for victim in all { policy.remove(victim.segment) }
            for name in ["D", "E", "F"] { policy.admit(SegmentID(named: name), bytes: 1) }

            #expect(calm.isEmpty)
            #expect(!some.isEmpty)
            #expect(all.count == 6)
            #expect(policy.usedBytes == 3)
        }
    }

    @Test("Skips spared segments and keeps their position", arguments: EvictionAlgorithm.allCases)
    func skipsTheSparedAndLeavesThemInPlace(algorithm: EvictionAlgorithm) {
        var policy = algorithm.policy(capacityBytes: 100)
        for name in ["A", "B", "C"] { policy.admit(SegmentID(named: name), bytes: 10) }
        var other = policy
        let spared = SegmentID(named: "A")

        let victims = policy.victims(toFree: 15) { $0 == spared }
        let none = other.victims(toFree: 1) { _ in true }
        let first = other.victims(toFree: 1) { _ in false }

        #expect(victims.map(\.segment.name) == ["B", "C"])
        #expect(policy.count == 3)
        #expect(none.isEmpty)
        #expect(first == [Victim(segment: spared, bytes: 10)])
    }

    @Test("Chooses segments again that were not removed", arguments: EvictionAlgorithm.allCases)
    func choosesAgainWhatWasNotRemoved(algorithm: EvictionAlgorithm) {
        var policy = algorithm.policy(capacityBytes: 100)
        for name in ["A", "B", "C"] { policy.admit(SegmentID(named: name), bytes: 10) }

        let rounds = (0..<4).map { _ in policy.victims(toFree: 30) { _ in false } }

        #expect(rounds.allSatisfy { Set($0.map(\.segment.name)) == ["A", "B", "C"] })
        #expect(policy.usedBytes == 30)
    }

    @Test("Is restored exactly from its stored entries", arguments: EvictionAlgorithm.allCases)
    func isTakenUpAsItWasByAnotherOfItsKind(algorithm: EvictionAlgorithm) {
        var (random, seed) = SeededRandom.announced()
        var policy = algorithm.policy(capacityBytes: 1000)
        for _ in 0..<500 {
            let segment = SegmentID(asset: AssetID(high: 7, low: 9), index: Int32.random(in: 0..<60, using: &random))
            if Bool.random(using: &random) { policy.touch(segment) } else { policy.admit(segment, bytes: 100) }
        }
        var other = algorithm.policy(capacityBytes: 1000)
        for slot in policy.slots {
            other.restore(
                policy.table.segment(at: slot), bytes: policy.table.bytes(at: slot),
                entry: policy.entry(at: slot))
        }

        #expect(other.usedBytes == policy.usedBytes)
        let expected = policy.victims(toFree: .max) { _ in false }
        #expect(other.victims(toFree: .max) { _ in false } == expected, "seed \(seed)")
    }

    @Test("Reports each segment with an entry changed by a choice of victims", arguments: EvictionAlgorithm.allCases)
    func tellsOfEachSegmentWhoseStandingAChoiceChanges(algorithm: EvictionAlgorithm) {
        var (random, seed) = SeededRandom.announced()
        var policy = algorithm.policy(capacityBytes: 1000)
        let segments = (0..<60).map { SegmentID(asset: AssetID(high: 7, low: 9), index: $0) }
        for segment in segments { policy.admit(segment, bytes: 20) }
        for _ in 0..<200 {
            policy.touch(segments[Int.random(in: 0..<60, using: &random)])
            let before = policy.slots.map { policy.entry(at: $0) }
            let slots = policy.slots
            var moved: Set<Int> = []
            let victims = policy.victims(
                toFree: .max, atMost: 2, sparing: { _, _ in false },
                moving: { slot in
                    moved.insert(slot)
                })
            let changed = zip(slots, before).filter { policy.entry(at: $0) != $1 }.map(\.0)
            #expect(victims.count == 2)
            #expect(moved.isSuperset(of: changed), "seed \(seed)")
        }
    }

    @Test("Needs at most sixty-four bytes per segment", arguments: EvictionAlgorithm.allCases)
    func needsAtMostSixtyFourBytesForASegment(algorithm: EvictionAlgorithm) {
        let count = 6000
        var policy = algorithm.policy(capacityBytes: Int64(count))
        var most = 0.0
        for index in 0..<Int32(3 * count) {
            let segment = SegmentID(asset: AssetID(high: 1, low: 2), index: index)
            for victim in policy.victims(toFree: policy.usedBytes + 1 - Int64(count), sparing: { _ in false }) {
                policy.remove(victim.segment)
            }
            policy.admit(segment, bytes: 1)
            if policy.count > 1000 { most = max(most, Double(policy.memoryBytes) / Double(policy.count)) }
        }

        #expect(policy.count == count)
        #expect(most <= 64)
    }
}
