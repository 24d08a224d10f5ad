/// LRU: evicts the least recently used segment first. Every operation is O(1); a choice of victims is O(1) for each
/// segment visited.
package struct LRUPolicy: EvictionPolicy {
    package private(set) var table = SegmentTable()
    /// Least recently used first.
    private var order = IndexList()
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
        order.append(slot)
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let slot = table.slot(of: segment) else { return }
        order.remove(slot)
        table.remove(at: slot)
    }

    package func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var victims: [Victim] = []
        var missing = bytes
        var next = order.first
        while let slot = next, missing > 0, victims.count < limit {
            let victim = table.victim(at: slot)
            if !sparing(victim.segment, slot) {
                victims.append(victim)
                missing -= victim.bytes
            }
            next = order.next(after: slot)
        }
        return victims
    }

    package var slots: [Int] { order.slots() }

    /// The order of segments is the whole state.
    package func entry(at slot: Int) -> PolicyEntry { PolicyEntry() }

    package mutating func restore(_ segment: SegmentID, bytes: Int64, entry: PolicyEntry) {
        admit(segment, bytes: bytes)
    }
}
