import Testing

@testable import CacheCore
import TestChance

@Suite struct SegmentHeapTests {
    private struct Member {
        var place: Int
        var priority: Double
    }

    /// The heap starts shortly before its sequence numbers overflow.
    @Test("Matches a sorted list, also when the sequence is renumbered")
    func agreesWithASortedListAlsoWhenItCountsAnew() {
        var (random, seed) = SeededRandom.announced()
        var heap = SegmentHeap(nextSequence: .max - 300)
        var model: [Member] = []  // least recently used first
        for _ in 0..<3000 {
            let place = Int.random(in: 0..<50, using: &random)
            let priority = Double(Int.random(in: 0..<8, using: &random))
            if let index = model.firstIndex(where: { $0.place == place }) {
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    heap.remove(place)
                    model.remove(at: index)
                case 1:
                    heap.update(place, priority: priority, isUse: true)
                    model.remove(at: index)
                    model.append(Member(place: place, priority: priority))
                default:
                    heap.update(place, priority: priority, isUse: false)
                    model[index].priority = priority
                }
            } else {
                heap.insert(place, priority: priority)
                model.append(Member(place: place, priority: priority))
            }
            let limit = Int.random(in: 1...60, using: &random)
            var walked: [Int] = []
            heap.walk { place, _ in
                walked.append(place)
                return walked.count < limit
            }
            let sorted = (0..<8).flatMap { level in model.filter { $0.priority == Double(level) }.map(\.place) }
            #expect(walked == Array(sorted.prefix(limit)), "seed \(seed)")
        }
    }
}
