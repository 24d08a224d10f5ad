import Testing

@testable import CacheCore
import TestChance

@Suite struct IndexListTests {
    @Test("The list keeps the order of an array through random steps")
    func itKeepsTheOrderOfAnArrayThroughRandomSteps() {
        var (random, seed) = SeededRandom.announced()
        var order = IndexList()
        var expected: [Int] = []
        for _ in 0..<5000 {
            let place = Int.random(in: 0..<40, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: #expect(order.popFirst() == (expected.isEmpty ? nil : expected.removeFirst()), "seed \(seed)")
            case 1, 2:
                order.remove(place)
                expected.removeAll { $0 == place }
            default:
                order.append(place)
                expected.removeAll { $0 == place }
                expected.append(place)
            }
            #expect(order.contains(place) == expected.contains(place), "seed \(seed)")
        }
        var walked: [Int] = []
        var next = order.first
        while let place = next {
            walked.append(place)
            next = order.next(after: place)
        }
        #expect(walked == expected, "seed \(seed)")
        #expect(order.count == expected.count, "seed \(seed)")
    }
}
