/// Divides assets into segments of equal size, the units of eviction. Extents stay byte-exact.
package struct SegmentGrid: Hashable, Sendable {
    /// Bytes per segment; the last one of an asset may be shorter.
    package let segmentBytes: Int64

    /// The grid for a store of that capacity; nil: no limit.
    package init(capacity: Int64?) { segmentBytes = Self.size(capacity: capacity) }

    /// A grid with this segment size, clamped to 64 bytes to 1 GiB.
    package init(segmentBytes: Int64) { self.segmentBytes = min(max(64, segmentBytes), 1 << 30) }

    /// The segment size for a capacity: the power of two nearest to 1/4096 of the capacity (the larger one on a tie),
    /// from 1 MiB to 16 MiB. Without a capacity it is 16 MiB.
    package static func size(capacity: Int64?) -> Int64 {
        let bounds: ClosedRange<Int64> = (1 << 20)...(16 << 20)
        guard let capacity else { return bounds.upperBound }
        let wanted = min(max(capacity / 4096, bounds.lowerBound), bounds.upperBound)
        let below = Int64(1) << Int64(63 - wanted.leadingZeroBitCount)
        return wanted - below < 2 * below - wanted ? below : 2 * below
    }

    /// The index of the segment that holds the byte at `offset`.
    package func index(of offset: Int64) -> Int32 { Int32(clamping: max(0, offset) / segmentBytes) }

    /// The indices of all segments that overlap `run`; empty for an empty run.
    package func indices(of run: ByteRange) -> Range<Int32> {
        guard !run.isEmpty else { return 0..<0 }
        let last = min(index(of: run.upperBound - 1), Int32.max - 1)
        return min(index(of: run.lowerBound), last)..<last + 1
    }

    /// The range of the segment at `index`, not cut at the end of the asset.
    package func run(of index: Int32) -> ByteRange {
        ByteRange(offset: Int64(index) * segmentBytes, length: segmentBytes)
    }
}
