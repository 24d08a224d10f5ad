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

/// Chooses what to evict. It only chooses: the store deletes, and then the segment is removed here.
package protocol EvictionPolicy: Sendable {
    /// The number of segments.
    var count: Int { get }
    /// The bytes of all segments.
    var usedBytes: Int64 { get }

    /// Takes a segment in; of one that is there already only the size is changed.
    mutating func admit(_ segment: SegmentID, bytes: Int64, at now: Timestamp)
    /// Changes a segment's size, nothing else; an unknown one is passed over.
    mutating func resize(_ segment: SegmentID, bytes: Int64)
    /// Bytes of the segment were read; an unknown one is passed over.
    mutating func touch(_ segment: SegmentID)
    /// Forgets a segment; an unknown one is passed over.
    mutating func remove(_ segment: SegmentID)
    /// The segments to give up, first to go first, until `bytes` are freed or nothing is left to take.
    ///
    /// Those for which `sparing` is true are skipped and stay where they are. Each segment is looked at once at most.
    /// The victims stay in the policy until they are removed.
    mutating func victims(toFree bytes: Int64, sparing: (SegmentID) -> Bool) -> [Victim]
}
