/// One segment of an asset: the unit of eviction.
package struct SegmentID: Hashable, Sendable {
    package var asset: AssetID
    /// Its place in the asset, from 0, in steps of the grid.
    package var index: Int32

    package init(asset: AssetID, index: Int32) {
        self.asset = asset
        self.index = index
    }
}

/// A segment that is to go, and what that frees.
package struct Victim: Hashable, Sendable {
    package var segment: SegmentID
    package var bytes: Int64

    package init(segment: SegmentID, bytes: Int64) {
        self.segment = segment
        self.bytes = bytes
    }
}

/// What a policy has learnt of a segment: enough to take it up again after a restart, or under another policy.
package struct Standing: Hashable, Sendable {
    /// Whether it is among those that proved worth keeping; in S3-FIFO: in the main queue.
    package var isProven: Bool
    /// The reads that still count for it.
    package var reads: UInt16
    /// Where the policy ranks by priority: its own.
    package var priority: Double?

    package init(isProven: Bool = false, reads: UInt16 = 0, priority: Double? = nil) {
        self.isProven = isProven
        self.reads = reads
        self.priority = priority
    }
}

/// Chooses what to evict. It only chooses: the store deletes, and then the segment is removed here.
///
/// Nothing here fails: a segment that is not known is passed over, a size below 0 is 0, and one of any size is taken in,
/// for the store has its bytes.
package protocol EvictionPolicy: Sendable {
    /// The segments; a segment keeps its place while it is known.
    var table: SegmentTable { get }
    /// What there is room for, by which some policies divide their queues; may change at any time.
    var capacityBytes: Int64 { get set }
    /// What it holds of the machine's memory.
    var memoryBytes: Int { get }

    /// A segment was asked for and is about to come: what is remembered of it outlasts the evictions that make room.
    mutating func expect(_ segment: SegmentID)
    /// Takes a segment in; of one that is there already only the size is changed.
    mutating func admit(_ segment: SegmentID, bytes: Int64)
    /// Changes a segment's size, nothing else.
    mutating func resize(_ segment: SegmentID, bytes: Int64)
    /// Bytes of the segment were read; answers whether it is known.
    @discardableResult
    mutating func touch(_ segment: SegmentID) -> Bool
    /// Forgets a segment.
    mutating func remove(_ segment: SegmentID)
    /// The segments to give up, first to go first, until `bytes` are freed, `limit` are chosen or nothing is left to take.
    ///
    /// Those for which `sparing` is true are skipped and stay where they are. The victims stay in the policy until they
    /// are removed, and may be chosen again, but count as evicted for what the policy learns from evictions: who only
    /// wants to know what would go asks a copy, and nobody asks for more than is about to go. `moving` is told the place of
    /// each segment whose standing the choice changes.
    mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (_ segment: SegmentID, _ place: Int) -> Bool,
        moving: (_ place: Int) -> Void
    ) -> [Victim]

    /// Where the next choice begins, for a policy that goes round; nil: with the oldest.
    var hand: Int? { get set }
    /// The places of all segments, in the order in which another policy of the kind takes them up with `restore`.
    var places: [Int] { get }
    /// What it knows of the segment at a place in use.
    func standing(at place: Int) -> Standing
    /// Takes up a segment that another policy, or this one before a restart, knew; of one that is there already only the size
    /// is changed.
    mutating func restore(_ segment: SegmentID, bytes: Int64, standing: Standing)
}

extension EvictionPolicy {
    /// The number of segments.
    package var count: Int { table.count }
    /// The bytes of all segments.
    package var usedBytes: Int64 { table.usedBytes }

    /// The size of a segment; nil where it is not known.
    package func bytes(of segment: SegmentID) -> Int64? { table.place(of: segment).map { table.bytes(at: $0) } }

    package mutating func expect(_ segment: SegmentID) {}

    /// Most begin anew each time.
    package var hand: Int? {
        get { nil }
        set {}
    }

    /// As the longer one, of any number.
    package mutating func victims(toFree bytes: Int64, sparing: (SegmentID) -> Bool) -> [Victim] {
        victims(toFree: bytes, atMost: .max, sparing: { segment, _ in sparing(segment) }, moving: { _ in })
    }
}
