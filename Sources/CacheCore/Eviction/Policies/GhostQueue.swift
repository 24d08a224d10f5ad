/// What was evicted lately, first in, first out, up to a number of bytes; no more of it is kept than 48 bits of a hash
/// and the size.
///
/// A ring with a hash table over it, chained by index; every step is O(1) in the mean over many, about twenty bytes each.
struct GhostQueue: Sendable {
    /// 16 bytes.
    private struct Ghost {
        var lowPrint: UInt32 = 0
        var lowBytes: UInt32 = 0
        /// The next place of the same chain.
        var next: UInt32 = GhostQueue.end
        var highPrint: UInt16 = 0
        var highBytes: UInt16 = 0

        /// 0: one that was taken out, and keeps its place until the ring comes round.
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

    private static let end = UInt32.max

    private var ring: [Ghost] = []
    private var heads: [UInt32] = []
    private var oldest = 0
    /// The places of the ring in use, from the oldest on.
    private var span = 0
    private(set) var count = 0
    private(set) var usedBytes: Int64 = 0
    var capacityBytes: Int64 { didSet { makeRoom(for: 0) } }

    init(capacityBytes: Int64) { self.capacityBytes = capacityBytes }

    /// What it holds of the machine's memory.
    var memoryBytes: Int {
        ring.capacity * MemoryLayout<Ghost>.stride + heads.capacity * MemoryLayout<UInt32>.stride
    }

    func contains(_ segment: SegmentID) -> Bool { place(of: Self.print(of: segment)) != nil }

    /// Remembers a segment that is evicted; without effect on one that is remembered already, on one of no bytes, and on
    /// one larger than all there is room for.
    mutating func insert(_ segment: SegmentID, bytes: Int64) {
        let bytes = SegmentTable.usable(bytes)
        guard bytes > 0, bytes <= capacityBytes, !contains(segment) else { return }
        makeRoom(for: bytes)
        append(Ghost(print: Self.print(of: segment), bytes: bytes))
    }

    /// Forgets a segment; answers whether it was remembered.
    mutating func remove(_ segment: SegmentID) -> Bool {
        guard let place = place(of: Self.print(of: segment)) else { return false }
        unlink(place)
        ring[place] = Ghost()
        return true
    }

    /// Makes a segment that is remembered the newest, and of no bytes.
    mutating func renew(_ segment: SegmentID) {
        if remove(segment) { append(Ghost(print: Self.print(of: segment), bytes: 0)) }
    }

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

    /// Gives the ring room for a sixteenth more than is remembered, without those that were taken out.
    private mutating func rebuild() {
        let kept = (0..<span).map { ring[(oldest + $0) % ring.count] }.filter { $0.print != 0 }
        let size = kept.count + max(16, kept.count / 16)
        ring = Array(repeating: Ghost(), count: size)
        heads = Array(repeating: Self.end, count: size / 2)
        (oldest, span, count, usedBytes) = (0, kept.count, 0, 0)
        for (place, ghost) in kept.enumerated() { link(ghost, at: place) }
    }

    private mutating func link(_ ghost: Ghost, at place: Int) {
        let chain = chain(of: ghost.print)
        ring[place] = ghost
        ring[place].next = heads[chain]
        heads[chain] = UInt32(place)
        count += 1
        usedBytes &+= ghost.bytes
    }

    private mutating func unlink(_ place: Int) {
        let ghost = ring[place]
        let chain = chain(of: ghost.print)
        if heads[chain] == UInt32(place) {
            heads[chain] = ghost.next
        } else {
            var before = Int(heads[chain])
            while ring[before].next != UInt32(place) { before = Int(ring[before].next) }
            ring[before].next = ghost.next
        }
        count -= 1
        usedBytes &-= ghost.bytes
    }

    private func place(of print: UInt64) -> Int? {
        guard count > 0 else { return nil }
        var next = heads[chain(of: print)]
        while next != Self.end {
            if ring[Int(next)].print == print { return Int(next) }
            next = ring[Int(next)].next
        }
        return nil
    }

    private func chain(of print: UInt64) -> Int { (print << 16).scaled(below: heads.count) }

    private static func print(of segment: SegmentID) -> UInt64 { max(1, segment.mixed >> 16) }
}
