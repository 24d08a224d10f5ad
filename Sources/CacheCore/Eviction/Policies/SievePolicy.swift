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
    /// The place to visit next; nil: the oldest.
    package var hand: Int?
    /// Does not affect the order: SIEVE has a single queue.
    package var capacityBytes: Int64

    package init(capacityBytes: Int64) { self.capacityBytes = capacityBytes }

    package var memoryBytes: Int { table.memoryBytes + order.memoryBytes }

    package mutating func admit(_ segment: SegmentID, bytes: Int64) {
        guard let place = table.place(of: segment) else {
            return order.append(table.insert(segment, bytes: bytes))
        }
        table.resize(at: place, to: bytes)
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        if let place = table.place(of: segment) { table.resize(at: place, to: bytes) }
    }

    @discardableResult
    package mutating func touch(_ segment: SegmentID) -> Bool {
        guard let place = table.place(of: segment) else { return false }
        table[mark: place] = Mark.read
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let place = table.place(of: segment) else { return }
        if hand == place { hand = order.next(after: place) }
        order.remove(place)
        table.remove(at: place)
    }

    package mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var chosen: [Int] = []
        var missing = bytes
        // The first lap may only clear marks. After the second lap no segment is left that can be evicted.
        var looks = 2 * count
        while missing > 0, chosen.count < limit, looks > 0, let place = hand ?? order.first {
            looks -= 1
            hand = order.next(after: place)
            guard table[mark: place] != Mark.chosen, !sparing(table.segment(at: place), place) else { continue }
            if table[mark: place] == Mark.read {
                table[mark: place] = 0
                moving(place)
            } else {
                table[mark: place] = Mark.chosen
                chosen.append(place)
                missing -= table.bytes(at: place)
            }
        }
        for place in chosen { table[mark: place] = 0 }
        return chosen.map { table.victim(at: $0) }
    }

    package var places: [Int] { order.places() }

    package func standing(at place: Int) -> PolicyEntry { PolicyEntry(reads: table[mark: place] == Mark.read ? 1 : 0) }

    package mutating func restore(_ segment: SegmentID, bytes: Int64, standing: PolicyEntry) {
        admit(segment, bytes: bytes)
        if standing.reads > 0 { touch(segment) }
    }
}
