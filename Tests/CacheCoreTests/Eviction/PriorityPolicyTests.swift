import Testing

@testable import CacheCore
import TestChance

@Suite struct PriorityPolicyTests {
    private struct Member {
        var segment: SegmentID
        var bytes: Int64
        var reads: Int64 = 1
        /// A multiple of the reads per byte.
        var priority: Int64 { reads * 5040 / bytes }
    }

    /// The policy starts shortly before its sequence numbers overflow.
    @Test("Matches a sorted list, also when the sequence is renumbered")
    func agreesWithASortedListAlsoWhenItCountsAnew() {
        var (random, seed) = SeededRandom.announced()
        var policy = PriorityPolicy(capacityBytes: 100, weight: .readsPerMegabyte, isAging: false)
        policy.nextSequence = .max - 300
        var model: [Member] = []  // least recently used first
        for _ in 0..<3000 {
            let segment = SegmentID(asset: AssetID(high: 1, low: 2), index: Int32.random(in: 0..<50, using: &random))
            // Divisors of 5040, so that priorities are exact and often equal.
            let bytes = Int64.random(in: 1...8, using: &random)
            if let index = model.firstIndex(where: { $0.segment == segment }) {
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    policy.remove(segment)
                    model.remove(at: index)
                case 1:
                    policy.touch(segment)
                    var member = model.remove(at: index)
                    member.reads += 1
                    model.append(member)
                default:
                    policy.resize(segment, bytes: bytes)
                    model[index].bytes = bytes
                }
            } else {
                policy.admit(segment, bytes: bytes)
                model.append(Member(segment: segment, bytes: bytes))
            }
            let sorted = model.enumerated().sorted {
                ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset)
            }
            #expect(policy.slots.map { policy.table.segment(at: $0) } == sorted.map(\.element.segment), "seed \(seed)")
        }
        #expect(policy.nextSequence < 3000, "seed \(seed)")
    }
}
