/// Evicts the segment with the least priority first. A priority is a weight plus the priority of the last victim at
/// that time, so that segments age when they are no longer read. Every operation is O(log n).
///
/// With reads as the weight this is LFU-DA; with reads per megabyte it is GDSF. Sources: Arlitt et al., "Evaluating
/// Content Management Techniques for Web Proxy Caches", 1999; Cherkasova, "Improving WWW Proxies Performance with
/// Greedy-Dual-Size-Frequency Caching Policy", 1998.
package struct PriorityPolicy: EvictionPolicy {
    /// The weight of a segment in its priority.
    package enum Weight: Hashable, Sendable {
        case reads
        case readsPerMegabyte
    }

    private struct Rank: Comparable {
        var priority: Double
        /// The number of the use that set the position among equals: the one that is unused for longest comes first.
        var sequence: UInt32

        static func < (left: Rank, right: Rank) -> Bool {
            left.priority < right.priority || (left.priority == right.priority && left.sequence < right.sequence)
        }
    }

    private let weight: Weight
    private let isAging: Bool
    /// The mark of a segment counts its reads plus 1, up to 65,535.
    package private(set) var table = SegmentTable()
    /// The slots of all segments by rank.
    private var heap = IndexedHeap<SlotIndex, Rank>()
    /// The number of the next use; internal for tests of the overflow.
    var nextSequence: UInt32 = 0
    /// The highest priority of any victim so far.
    private var floor = 0.0
    /// Does not affect the priorities.
    package var capacityBytes: Int64

    /// `isAging`: false ignores the priority of victims, which gives plain LFU.
    package init(capacityBytes: Int64, weight: Weight, isAging: Bool = true) {
        self.capacityBytes = capacityBytes
        self.weight = weight
        self.isAging = isAging
    }

    package var memoryBytes: Int { table.memoryBytes + heap.memoryBytes }

    package mutating func admit(_ segment: SegmentID, bytes: Int64) {
        guard table.slot(of: segment) == nil else { return resize(segment, bytes: bytes) }
        let slot = table.insert(segment, bytes: bytes)
        table[mark: slot] = 1
        use(slot, priority: priority(of: slot))
    }

    package mutating func resize(_ segment: SegmentID, bytes: Int64) {
        guard let slot = table.slot(of: segment) else { return }
        // A restored segment has no bytes until it is counted. Its restored priority must survive that first size.
        let isCounted = table.bytes(at: slot) > 0
        table.resize(at: slot, to: bytes)
        guard weight == .readsPerMegabyte, isCounted, var rank = heap.rank(of: UInt32(slot)) else { return }
        rank.priority = priority(of: slot)
        heap.set(UInt32(slot), to: rank)
    }

    @discardableResult
    package mutating func touch(_ segment: SegmentID) -> Bool {
        guard let slot = table.slot(of: segment) else { return false }
        if table[mark: slot] < .max { table[mark: slot] += 1 }
        use(slot, priority: priority(of: slot))
        return true
    }

    package mutating func remove(_ segment: SegmentID) {
        guard let slot = table.slot(of: segment) else { return }
        heap.remove(UInt32(slot))
        table.remove(at: slot)
    }

    package mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (SegmentID, Int) -> Bool, moving: (Int) -> Void
    ) -> [Victim] {
        var victims: [Victim] = []
        var missing = bytes
        guard missing > 0, limit > 0 else { return [] }
        var floor = floor
        heap.walk { member in
            let victim = table.victim(at: Int(member.id))
            if !sparing(victim.segment, Int(member.id)) {
                victims.append(victim)
                missing -= victim.bytes
                floor = max(floor, member.rank.priority)
            }
            return missing > 0 && victims.count < limit
        }
        if isAging { self.floor = floor }
        return victims
    }

    package var slots: [Int] {
        var slots: [Int] = []
        heap.walk { member in
            slots.append(Int(member.id))
            return true
        }
        return slots
    }

    package func entry(at slot: Int) -> PolicyEntry {
        PolicyEntry(reads: table[mark: slot] - 1, priority: heap.rank(of: UInt32(slot))?.priority)
    }

    /// Restores a segment with its priority. Segments arrive least priority first, so the first one gives the aging
    /// floor.
    package mutating func restore(_ segment: SegmentID, bytes: Int64, entry: PolicyEntry) {
        guard table.slot(of: segment) == nil else { return resize(segment, bytes: bytes) }
        if let priority = entry.priority, isAging, count == 0 { floor = priority }
        let slot = table.insert(segment, bytes: bytes)
        table[mark: slot] = min(entry.reads, .max - 1) + 1
        use(slot, priority: entry.priority ?? priority(of: slot))
    }

    /// Makes the slot the last among those of equal priority.
    private mutating func use(_ slot: Int, priority: Double) {
        if nextSequence == .max { renumber() }
        heap.set(UInt32(slot), to: Rank(priority: priority, sequence: nextSequence))
        nextSequence += 1
    }

    /// Numbers the uses from 0 in the same order, when the sequence reaches its limit.
    private mutating func renumber() {
        let members = heap.members.sorted { $0.rank.sequence < $1.rank.sequence }
        for (sequence, member) in members.enumerated() {
            heap.set(member.id, to: Rank(priority: member.rank.priority, sequence: UInt32(sequence)))
        }
        nextSequence = UInt32(members.count)
    }

    /// The present priority of a segment.
    private func priority(of slot: Int) -> Double {
        let reads = Double(table[mark: slot])
        return floor + (weight == .reads ? reads : reads * 1e6 / Double(max(1, table.bytes(at: slot))))
    }
}
