/// Hash table of all segments of a policy with their sizes and marks. A segment has a fixed slot (an index) until it
/// is removed.
///
/// Stored in flat arrays and chained by index: 32 bytes for a segment and at most 5 for the head of its chain. Lookup,
/// insertion and removal are O(1).
package struct SegmentTable: Sendable {
    /// One segment, 32 bytes; a size has 48 bits.
    private struct Entry {
        var segment: SegmentID
        /// The next entry of the same hash chain, or of the list of free entries.
        var next: UInt32
        var lowBytes: UInt32
        var highBytes: UInt16
        /// A value of the policy.
        var mark: UInt16

        init(segment: SegmentID, bytes: Int64, next: UInt32) {
            self.segment = segment
            self.next = next
            lowBytes = UInt32(truncatingIfNeeded: bytes)
            highBytes = UInt16(truncatingIfNeeded: bytes >> 32)
            mark = 0
        }

        var bytes: Int64 { Int64(highBytes) << 32 | Int64(lowBytes) }
    }

    /// The end of a chain.
    private static let end = UInt32.max

    private var entries: [Entry] = []
    /// The first entry of each hash chain.
    private var heads: [UInt32] = []
    /// The first free entry.
    private var free = Self.end
    /// The number of segments.
    package private(set) var count = 0
    /// The bytes of all segments. The sum wraps around above 8 EiB instead of trapping.
    package private(set) var usedBytes: Int64 = 0

    /// Allocated memory in bytes.
    var memoryBytes: Int {
        entries.capacity * MemoryLayout<Entry>.stride + heads.capacity * MemoryLayout<UInt32>.stride
    }

    /// The slot of a segment; nil if it is not in the table.
    package func slot(of segment: SegmentID) -> Int? {
        guard !heads.isEmpty else { return nil }
        var next = heads[chain(of: segment)]
        while next != Self.end {
            let entry = entries[Int(next)]
            if entry.segment == segment { return Int(next) }
            next = entry.next
        }
        return nil
    }

    /// The segment at a slot in use.
    package func segment(at slot: Int) -> SegmentID { entries[slot].segment }

    /// The size of the segment at a slot in use.
    package func bytes(at slot: Int) -> Int64 { entries[slot].bytes }

    func victim(at slot: Int) -> Victim {
        Victim(segment: entries[slot].segment, bytes: entries[slot].bytes)
    }

    /// A value that the policy stores for the segment at a slot in use; 0 after insertion.
    subscript(mark slot: Int) -> UInt16 {
        get { entries[slot].mark }
        set { entries[slot].mark = newValue }
    }

    /// Adds a segment that is not in the table. Returns its slot.
    mutating func insert(_ segment: SegmentID, bytes: Int64) -> Int {
        if count >= heads.count { growHeads() }
        let chain = chain(of: segment)
        let bytes = Self.usable(bytes)
        let entry = Entry(segment: segment, bytes: bytes, next: heads[chain])
        let slot: Int
        if free == Self.end {
            slot = entries.count
            entries.appendClosely(entry)
        } else {
            slot = Int(free)
            free = entries[slot].next
            entries[slot] = entry
        }
        heads[chain] = UInt32(slot)
        count += 1
        usedBytes &+= bytes
        return slot
    }

    /// Changes the size of the segment at a slot in use.
    mutating func resize(at slot: Int, to bytes: Int64) {
        let bytes = Self.usable(bytes)
        usedBytes &+= bytes - entries[slot].bytes
        entries[slot].lowBytes = UInt32(truncatingIfNeeded: bytes)
        entries[slot].highBytes = UInt16(truncatingIfNeeded: bytes >> 32)
    }

    /// Removes the segment at a slot in use; the slot becomes free.
    mutating func remove(at slot: Int) {
        let entry = entries[slot]
        let chain = chain(of: entry.segment)
        if heads[chain] == UInt32(slot) {
            heads[chain] = entry.next
        } else {
            var before = Int(heads[chain])
            while entries[before].next != UInt32(slot) { before = Int(entries[before].next) }
            entries[before].next = entry.next
        }
        entries[slot].next = free
        free = UInt32(slot)
        count -= 1
        usedBytes &-= entry.bytes
    }

    /// Clamps a size to 0…256 TiB, the range of 48 bits.
    static func usable(_ bytes: Int64) -> Int64 { min(max(bytes, 0), 1 << 48 - 1) }

    private func chain(of segment: SegmentID) -> Int { segment.hashed(below: heads.count) }

    /// Enlarges the table by a quarter and rebuilds all chains.
    private mutating func growHeads() {
        heads = Array(repeating: Self.end, count: max(16, heads.count + heads.count / 4))
        // No entry is free here: the table grows only when `count` reaches a new maximum, so all removed entries were
        // reused.
        for slot in entries.indices {
            let chain = chain(of: entries[slot].segment)
            entries[slot].next = heads[chain]
            heads[chain] = UInt32(slot)
        }
    }
}

extension SegmentID {
    /// Maps the segment to 0..<limit by a hash that is equal in every process.
    package func hashed(below limit: Int) -> Int { mixed.scaled(below: limit) }

    /// A 64-bit hash of all bits of the identifier, equal in every process (finalizer of SplitMix64).
    var mixed: UInt64 {
        var word = asset.high ^ (asset.low &* 0xFF51_AFD7_ED55_8CCD) ^ (UInt64(UInt32(bitPattern: index)) << 17)
        word = (word &+ 0x9E37_79B9_7F4A_7C15)
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

extension UInt64 {
    /// Maps the value to 0..<limit by its leading bits.
    func scaled(below limit: Int) -> Int { Int(multipliedFullWidth(by: UInt64(limit)).high) }
}
