import Testing

@testable import CacheCore
import TestChance

@Suite struct IndexedHeapTests {
    @Test("The heap stays ordered through random moves and removals")
    func theLeastComesFirstWhateverIsMovedOrTakenOut() {
        check([Int: Int].self)
        check(SlotIndex.self)
    }

    private func check<Index: HeapIndex & Sendable>(_ index: Index.Type)
    where Index.ID: FixedWidthInteger & Sendable {
        var (numbers, seed) = SeededRandom.announced()
        func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
        var heap = IndexedHeap<Index, Int>()
        var plain: [Index.ID: Int] = [:]
        for _ in 0..<5000 {
            let id = Index.ID(random(200))
            if random(3) == 0 {
                let (removed, expected) = (heap.remove(id), plain.removeValue(forKey: id))
                #expect(removed == expected, "seed \(seed)")
            } else {
                let rank = random(1000)
                heap.set(id, to: rank)
                plain[id] = rank
            }
            #expect(heap.first?.rank == plain.values.min(), "seed \(seed)")
            #expect(heap.count == plain.count && heap.rank(of: id) == plain[id], "seed \(seed)")
            var walked: [Int] = []
            let limit = random(9) + 1
            heap.walk { member in
                walked.append(member.rank)
                return walked.count < limit
            }
            #expect(walked == Array(plain.values.sorted().prefix(limit)), "seed \(seed)")
        }
        var ranks: [Int] = []
        while let member = heap.popFirst() { ranks.append(member.rank) }
        #expect(ranks == plain.values.sorted(), "seed \(seed)")
    }
}
