/// SIEVE: one queue in order of arrival, and a hand that moves from the oldest to the newest segment. The hand skips
/// segments that were read since its last visit, and evicts the first one that was not (Zhang et al., "SIEVE is Simpler
/// than LRU", NSDI 2024).
///
/// Every operation is O(1); choosing a victim is O(1) amortized.
package struct SievePolicy: EvictionPolicy {
    /// The values of a mark.
    private enum Mark {
        /// Read since the last visit of the hand.
        static let read: UInt16 = 1
        /// Chosen in the present call of `victims`.
        static let chosen: UInt16 = 2
    }

    package private(set) var table = SegmentTable()
    /// Oldest first.
    private var order = IndexList()
    /// The slot to visit next; nil: the oldest.
    package var hand: Int?
    /// Does not affect the order: SIEVE has a single queue.
    package var capacityBytes: Int64

    package init(capacityBytes: Int64) { self.capacityBytes = capacityBytes }

    package var memoryBytes: Int { table.memoryBytes + order.memoryBytes }

    package mutating func admit(_ segment: SegmentID, bytes: Int64) {
        guard let slot = table.slot(of: segment) else {
            return order.append(table.insert(segment, bytes: bytes))
        }
        table.resize(at: slot, to: bytes)
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        if let slot = table.slot(of: segment) { table.resize(at: slot, to: bytes) }
    }

    @discardableResult
    package mutating func touch(_ segment: SegmentID) -> Bool {
        guard let slot = table.slot(of: segment) else { return false }
        table[mark: slot] = Mark.read
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let slot = table.slot(of: segment) else { return }
        if hand == slot { hand = order.next(after: slot) }
        order.remove(slot)
        table.remove(at: slot)
    }

    package mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var chosen: [Int] = []
        var missing = bytes
        // The first lap may only clear marks. After the second lap no segment is left that can be evicted.
        var looks = 2 * count
        while missing > 0, chosen.count < limit, looks > 0, let slot = hand ?? order.first {
            looks -= 1
            hand = order.next(after: slot)
            guard table[mark: slot] != Mark.chosen, !sparing(table.segment(at: slot), slot) else { continue }
            if table[mark: slot] == Mark.read {
                table[mark: slot] = 0
                moving(slot)
            } else {
                table[mark: slot] = Mark.chosen
                chosen.append(slot)
                missing -= table.bytes(at: slot)
            }
        }
        for slot in chosen { table[mark: slot] = 0 }
        return chosen.map { table.victim(at: $0) }
    }

    package var slots: [Int] { order.slots() }

    package func entry(at slot: Int) -> PolicyEntry { PolicyEntry(reads: table[mark: slot] == Mark.read ? 1 : 0) }

    package mutating func restore(_ segment: SegmentID, bytes: Int64, entry: PolicyEntry) {
        admit(segment, bytes: bytes)
        if entry.reads > 0 { touch(segment) }
    }
}
