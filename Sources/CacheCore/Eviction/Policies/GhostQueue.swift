/// FIFO queue of recently evicted segments, limited by the sum of their sizes. An entry has only a 48-bit hash of the
/// segment and its size.
///
/// Implemented as a ring with a hash table over it, chained by index. Every operation is O(1) amortized and needs about
/// 20 bytes for each entry.
struct GhostQueue: Sendable {
    /// One entry, 16 bytes.
    private struct Ghost {
        var lowPrint: UInt32 = 0
        var lowBytes: UInt32 = 0
        /// The next position of the same hash chain, or `end`.
        var next: UInt32 = GhostQueue.end
        var highPrint: UInt16 = 0
        var highBytes: UInt16 = 0

        /// The hash; 0: a removed entry, which occupies its position until the ring passes it.
        var print: UInt64 { UInt64(highPrint) << 32 | UInt64(lowPrint) }
        var bytes: Int64 { Int64(highBytes) << 32 | Int64(lowBytes) }

        init() {}

        init(print: UInt64, bytes: Int64) {
            lowPrint = UInt32(truncatingIfNeeded: print)
            highPrint = UInt16(truncatingIfNeeded: print >> 32)
            lowBytes = UInt32(truncatingIfNeeded: bytes)
            highBytes = UInt16(truncatingIfNeeded: bytes >> 32)
        }
    }

    /// The end of a hash chain.
    private static let end = UInt32.max

    private var ring: [Ghost] = []
    /// The first position of each hash chain.
    private var heads: [UInt32] = []
    /// The position of the oldest entry.
    private var oldest = 0
    /// The number of occupied ring positions, including removed entries.
    private var span = 0
    /// The number of entries.
    private(set) var count = 0
    /// The sum of the sizes of all entries.
    private(set) var usedBytes: Int64 = 0
    /// The limit of `usedBytes`. Lowering it drops the oldest entries.
    var capacityBytes: Int64 { didSet { makeRoom(for: 0) } }

    init(capacityBytes: Int64) { self.capacityBytes = capacityBytes }

    /// Allocated memory in bytes.
    var memoryBytes: Int {
        ring.capacity * MemoryLayout<Ghost>.stride + heads.capacity * MemoryLayout<UInt32>.stride
    }

    func contains(_ segment: SegmentID) -> Bool { slot(of: Self.print(of: segment)) != nil }

    /// Remembers an evicted segment. It has no effect if the segment is remembered already, has no bytes, or exceeds
    /// the capacity.
    mutating func insert(_ segment: SegmentID, bytes: Int64) {
        let bytes = SegmentTable.usable(bytes)
        guard bytes > 0, bytes <= capacityBytes, !contains(segment) else { return }
        makeRoom(for: bytes)
        append(Ghost(print: Self.print(of: segment), bytes: bytes))
    }

    /// Forgets a segment. Returns whether it was remembered.
    mutating func remove(_ segment: SegmentID) -> Bool {
        guard let slot = slot(of: Self.print(of: segment)) else { return false }
        unlink(slot)
        ring[slot] = Ghost()
        return true
    }

    /// Makes a remembered segment the newest entry, with size 0: the evictions that free the space for it then
    /// cannot push it out.
    mutating func renew(_ segment: SegmentID) {
        if remove(segment) { append(Ghost(print: Self.print(of: segment), bytes: 0)) }
    }

    /// Drops the oldest entries until `bytes` fit.
    private mutating func makeRoom(for bytes: Int64) {
        while span > 0, usedBytes > capacityBytes - bytes {
            if ring[oldest].print != 0 { unlink(oldest) }
            oldest = oldest + 1 == ring.count ? 0 : oldest + 1
            span -= 1
        }
    }

    private mutating func append(_ ghost: Ghost) {
        if span == ring.count { rebuild() }
        link(ghost, at: (oldest + span) % ring.count)
        span += 1
    }

    /// Reallocates the ring for a sixteenth more entries (at least 16 more), without the removed ones.
    private mutating func rebuild() {
        let kept = (0..<span).map { ring[(oldest + $0) % ring.count] }.filter { $0.print != 0 }
        let size = kept.count + max(16, kept.count / 16)
        ring = Array(repeating: Ghost(), count: size)
        heads = Array(repeating: Self.end, count: size / 2)
        (oldest, span, count, usedBytes) = (0, kept.count, 0, 0)
        for (slot, ghost) in kept.enumerated() { link(ghost, at: slot) }
    }

    /// Stores an entry at a free position and adds it to its hash chain.
    private mutating func link(_ ghost: Ghost, at slot: Int) {
        let chain = chain(of: ghost.print)
        ring[slot] = ghost
        ring[slot].next = heads[chain]
        heads[chain] = UInt32(slot)
        count += 1
        usedBytes &+= ghost.bytes
    }

    /// Removes an entry from its hash chain; the position stays occupied.
    private mutating func unlink(_ slot: Int) {
        let ghost = ring[slot]
        let chain = chain(of: ghost.print)
        if heads[chain] == UInt32(slot) {
            heads[chain] = ghost.next
        } else {
            var before = Int(heads[chain])
            while ring[before].next != UInt32(slot) { before = Int(ring[before].next) }
            ring[before].next = ghost.next
        }
        count -= 1
        usedBytes &-= ghost.bytes
    }

    /// The position of an entry; nil if there is none.
    private func slot(of print: UInt64) -> Int? {
        guard count > 0 else { return nil }
        var next = heads[chain(of: print)]
        while next != Self.end {
            if ring[Int(next)].print == print { return Int(next) }
            next = ring[Int(next)].next
        }
        return nil
    }

    private func chain(of print: UInt64) -> Int { (print << 16).scaled(below: heads.count) }

    /// The 48-bit hash of a segment; never 0, which marks removed entries.
    private static func print(of segment: SegmentID) -> UInt64 { max(1, segment.mixed >> 16) }
}
