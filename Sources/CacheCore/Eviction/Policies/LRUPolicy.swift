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
        order.append(place)
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let place = table.place(of: segment) else { return }
        order.remove(place)
        table.remove(at: place)
    }

    package func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var victims: [Victim] = []
        var missing = bytes
        var next = order.first
        while let place = next, missing > 0, victims.count < limit {
            let victim = table.victim(at: place)
            if !sparing(victim.segment, place) {
                victims.append(victim)
                missing -= victim.bytes
            }
            next = order.next(after: place)
        }
        return victims
    }

    package var places: [Int] { order.places() }

    /// The order of segments is the whole state.
    package func standing(at place: Int) -> PolicyEntry { PolicyEntry() }

    package mutating func restore(_ segment: SegmentID, bytes: Int64, standing: PolicyEntry) {
        admit(segment, bytes: bytes)
    }
}
