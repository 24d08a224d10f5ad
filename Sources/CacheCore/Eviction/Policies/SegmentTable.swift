/// The segments a policy knows, each with its bytes and a mark, at a place that stays the same while it is known.
///
/// A hash table of flat arrays, chained by index: 32 bytes a segment and at most five for its chain's head; finding,
/// adding and removing are O(1).
package struct SegmentTable: Sendable {
    /// 32 bytes; sizes have 48 bits.
    private struct Entry {
        var segment: SegmentID
        /// The next entry of the same chain, or the next free one.
        var next: UInt32
        var lowBytes: UInt32
        var highBytes: UInt16
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

    private static let end = UInt32.max

    private var entries: [Entry] = []
    private var heads: [UInt32] = []
    private var free = Self.end
    package private(set) var count = 0
    /// Wraps around above eight exabytes rather than fail.
    package private(set) var usedBytes: Int64 = 0

    /// What it holds of the machine's memory.
    var memoryBytes: Int {
        entries.capacity * MemoryLayout<Entry>.stride + heads.capacity * MemoryLayout<UInt32>.stride
    }

    /// Where the segment is; nil where it is not known.
    package func place(of segment: SegmentID) -> Int? {
        guard !heads.isEmpty else { return nil }
        var next = heads[chain(of: segment)]
        while next != Self.end {
            let entry = entries[Int(next)]
            if entry.segment == segment { return Int(next) }
            next = entry.next
        }
        return nil
    }

    /// Of a place in use, as `bytes(at:)`.
    package func segment(at place: Int) -> SegmentID { entries[place].segment }

    package func bytes(at place: Int) -> Int64 { entries[place].bytes }

    func victim(at place: Int) -> Victim {
        Victim(segment: entries[place].segment, bytes: entries[place].bytes)
    }

    /// What the policy notes of a segment; 0 at first.
    subscript(mark place: Int) -> UInt16 {
        get { entries[place].mark }
        set { entries[place].mark = newValue }
    }

    /// Adds a segment that is not in; answers its place.
    mutating func insert(_ segment: SegmentID, bytes: Int64) -> Int {
        if count >= heads.count { growHeads() }
        let chain = chain(of: segment)
        let bytes = Self.usable(bytes)
        let entry = Entry(segment: segment, bytes: bytes, next: heads[chain])
        let place: Int
        if free == Self.end {
            place = entries.count
            entries.appendClosely(entry)
        } else {
            place = Int(free)
            free = entries[place].next
            entries[place] = entry
        }
        heads[chain] = UInt32(place)
        count += 1
        usedBytes &+= bytes
        return place
    }

    mutating func resize(at place: Int, to bytes: Int64) {
        let bytes = Self.usable(bytes)
        usedBytes &+= bytes - entries[place].bytes
        entries[place].lowBytes = UInt32(truncatingIfNeeded: bytes)
        entries[place].highBytes = UInt16(truncatingIfNeeded: bytes >> 32)
    }

    mutating func remove(at place: Int) {
        let entry = entries[place]
        let chain = chain(of: entry.segment)
        if heads[chain] == UInt32(place) {
            heads[chain] = entry.next
        } else {
            var before = Int(heads[chain])
            while entries[before].next != UInt32(place) { before = Int(entries[before].next) }
            entries[before].next = entry.next
        }
        entries[place].next = free
        free = UInt32(place)
        count -= 1
        usedBytes &-= entry.bytes
    }

    /// Sizes below 0 count as 0, those above 256 TiB as that.
    static func usable(_ bytes: Int64) -> Int64 { min(max(bytes, 0), 1 << 48 - 1) }

    private func chain(of segment: SegmentID) -> Int { segment.mixed.scaled(below: heads.count) }

    private mutating func growHeads() {
        heads = Array(repeating: Self.end, count: max(16, heads.count + heads.count / 4))
        // Every entry is in use: no earlier count was as high, so none was ever taken out that is not back.
        for place in entries.indices {
            let chain = chain(of: entries[place].segment)
            entries[place].next = heads[chain]
            heads[chain] = UInt32(place)
        }
    }
}

extension SegmentID {
    /// 64 bits that depend on every bit of the name, the same in every run (the finalizer of SplitMix64).
    var mixed: UInt64 {
        var word = asset.high ^ (asset.low &* 0xFF51_AFD7_ED55_8CCD) ^ (UInt64(UInt32(bitPattern: index)) << 17)
        word = (word &+ 0x9E37_79B9_7F4A_7C15)
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

extension UInt64 {
    /// The number below `limit` that its leading bits stand for.
    func scaled(below limit: Int) -> Int { Int(multipliedFullWidth(by: UInt64(limit)).high) }
}
