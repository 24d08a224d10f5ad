/// Identifies one segment of an asset, the unit of eviction.
package struct SegmentID: Hashable, Sendable {
    package var asset: AssetID
    /// The position of the segment in the asset, counted from 0 in segments of the grid.
    package var index: Int32

    package init(asset: AssetID, index: Int32) {
        self.asset = asset
        self.index = index
    }
}

/// A segment chosen for eviction, and the bytes that its eviction frees.
package struct Victim: Hashable, Sendable {
    package var segment: SegmentID
    package var bytes: Int64

    package init(segment: SegmentID, bytes: Int64) {
        self.segment = segment
        self.bytes = bytes
    }
}

/// The state that a policy has for one segment: sufficient to restore it after a restart or under another policy.
package struct PolicyEntry: Hashable, Sendable {
    /// Whether the segment has proved worth keeping; in S3-FIFO: it is in the main queue.
    package var isProven: Bool
    /// The reads that still count for the segment.
    package var reads: UInt16
    /// The priority, for policies that rank by it; nil for others.
    package var priority: Double?

    package init(isProven: Bool = false, reads: UInt16 = 0, priority: Double? = nil) {
        self.isProven = isProven
        self.reads = reads
        self.priority = priority
    }
}

/// Chooses the segments to evict. A policy only ranks segments; the store deletes the bytes and then removes the
/// segment here.
///
/// No operation fails. Unknown segments are ignored, sizes below 0 count as 0, and a segment of any size is admitted,
/// because its bytes are on disk already.
package protocol EvictionPolicy: Sendable {
    /// All segments. A segment keeps its slot until it is removed.
    var table: SegmentTable { get }
    /// The space for segments in bytes, which some policies divide into queues. It may change at any time.
    var capacityBytes: Int64 { get set }
    /// Allocated memory in bytes.
    var memoryBytes: Int { get }

    /// Announces a requested segment before its bytes arrive. The history of the segment then survives the evictions
    /// that free the space for it.
    mutating func expect(_ segment: SegmentID)
    /// Admits a segment. If the segment is known, only its size changes.
    mutating func admit(_ segment: SegmentID, bytes: Int64)
    /// Changes the size of a segment without counting a use.
    mutating func resize(_ segment: SegmentID, bytes: Int64)
    /// Counts a read of the segment. Returns whether the segment is known.
    @discardableResult
    mutating func touch(_ segment: SegmentID) -> Bool
    /// Removes a segment.
    mutating func remove(_ segment: SegmentID)
    /// Chooses victims in eviction order until `bytes` are covered, `limit` are chosen, or no segment is left.
    ///
    /// Segments for which `sparing` returns true are skipped and keep their position. `moving` receives the slot of
    /// each segment with a changed entry.
    ///
    /// Victims stay in the policy until they are removed, and may be chosen again. The policy learns from a choice as
    /// from an eviction. Therefore:
    /// - For a preview, call this on a copy.
    /// - Do not request more bytes than will be evicted.
    mutating func victims(
        toFree bytes: Int64, atMost limit: Int, sparing: (_ segment: SegmentID, _ slot: Int) -> Bool,
        moving: (_ slot: Int) -> Void
    ) -> [Victim]

    /// The slot where the next choice starts, for SIEVE; nil: the oldest segment.
    var hand: Int? { get set }
    /// The slots of all segments, in the order in which `restore` expects them.
    var slots: [Int] { get }
    /// The entry of the segment at a slot in use.
    func entry(at slot: Int) -> PolicyEntry
    /// Restores a segment with its entry from another policy, or from this one before a restart. If the segment is
    /// known, only its size changes.
    mutating func restore(_ segment: SegmentID, bytes: Int64, entry: PolicyEntry)
}

/// Shared properties and defaults.
extension EvictionPolicy {
    /// The number of segments.
    package var count: Int { table.count }
    /// The bytes of all segments.
    package var usedBytes: Int64 { table.usedBytes }

    /// The size of a segment; nil where it is not known.
    package func bytes(of segment: SegmentID) -> Int64? { table.slot(of: segment).map { table.bytes(at: $0) } }

    /// Default: the policy keeps no history of evicted segments.
    package mutating func expect(_ segment: SegmentID) {}

    /// Default: every choice starts at the oldest segment.
    package var hand: Int? {
        get { nil }
        set {}
    }

    /// Chooses any number of victims, without the slot and without a report of moved segments.
    package mutating func victims(toFree bytes: Int64, sparing: (SegmentID) -> Bool) -> [Victim] {
        victims(toFree: bytes, atMost: .max, sparing: { segment, _ in sparing(segment) }, moving: { _ in })
    }
}
