/// How the store's disk space is used, and what is to go when it runs short; a value that only decides.
package struct SpaceLedger: Sendable {
    private struct Segment {
        var bytes: Int64
        var arrivedAt: Timestamp
        var reads: Int64
    }

    /// The policy in force. A new capacity takes effect at once; the grid of segments stays until the next start.
    package var settings: PolicySettings
    /// Real disk blocks of all files.
    package var usedBytes: Int64 = 0
    /// Free bytes of the disk, for everybody; nil until measured.
    package var freeDiskBytes: Int64?
    /// Promised to windows under way.
    package private(set) var reservedBytes: Int64 = 0
    package var pinned: Set<AssetID> = []
    private let grid: SegmentGrid
    private var policy: any EvictionPolicy
    private var segments: [SegmentID: Segment] = [:]

    package init(settings: PolicySettings) {
        self.settings = settings
        grid = SegmentGrid(capacity: settings.capacityBytes)
        policy =
            switch settings.algorithm {
            case .lru: LRUPolicy()
            }
    }

    // MARK: Space

    /// Promises `bytes` if they fit under the capacity, and above what must stay free of the disk.
    package mutating func reserve(_ bytes: Int64) -> Bool {
        if let capacity = settings.capacityBytes, usedBytes + reservedBytes + bytes > capacity { return false }
        if let freeDiskBytes, freeDiskBytes - reservedBytes - bytes < settings.minFreeDiskBytes { return false }
        reservedBytes += bytes
        return true
    }

    /// Promises `bytes` though they do not fit: nothing more can be evicted, and readers come first.
    package mutating func overdraw(_ bytes: Int64) { reservedBytes += bytes }

    package mutating func release(_ bytes: Int64) { reservedBytes = max(0, reservedBytes - bytes) }

    /// How many bytes are to be freed now, with `waitingBytes` more asked for: from above the high watermark down to the
    /// low one, and as much as the disk lacks.
    package func excess(waitingBytes: Int64) -> Int64 {
        var excess: Int64 = 0
        let needed = usedBytes + reservedBytes + waitingBytes
        if let capacity = settings.capacityBytes, needed > Int64(Double(capacity) * settings.highWatermark) {
            excess = needed - Int64(Double(capacity) * settings.lowWatermark)
        }
        if let freeDiskBytes {
            excess = max(excess, settings.minFreeDiskBytes - (freeDiskBytes - reservedBytes - waitingBytes))
        }
        return min(excess, usedBytes)
    }

    // MARK: Segments

    /// Bytes were written; the segments they lie in are the most recent now if they are new.
    package mutating func arrived(_ range: ByteRange, of asset: AssetID, at now: Timestamp) {
        for (id, part) in parts(of: range, of: asset) {
            var segment = segments[id] ?? Segment(bytes: 0, arrivedAt: now, reads: 0)
            segment.bytes = min(segment.bytes + part.length, grid.segmentBytes)
            segment.arrivedAt = now
            segments[id] = segment
            policy.admit(id, bytes: segment.bytes, at: now)
        }
    }

    /// Bytes on disk were read.
    package mutating func read(_ range: ByteRange, of asset: AssetID) {
        for (id, _) in parts(of: range, of: asset) {
            segments[id]?.reads += 1
            policy.touch(id)
        }
    }

    /// Bytes are off the disk.
    package mutating func gone(_ range: ByteRange, of asset: AssetID) {
        for (id, part) in parts(of: range, of: asset) {
            guard var segment = segments[id] else { continue }
            segment.bytes -= part.length
            if segment.bytes > 0 {
                segments[id] = segment
                policy.resize(id, bytes: segment.bytes)
            } else {
                forget(id)
            }
        }
    }

    package mutating func forget(_ id: SegmentID) {
        segments[id] = nil
        policy.remove(id)
    }

    package func reads(of asset: AssetID, in range: ByteRange) -> Int64 {
        parts(of: range, of: asset).reduce(0) { $0 + (segments[$1.0]?.reads ?? 0) }
    }

    /// What to give up, first to go first, to free `bytes`; pinned assets never, segments younger than the grace only
    /// where space is `isDesperate` or above the capacity, and none of those in `besides`.
    package mutating func victims(
        toFree bytes: Int64, at now: Timestamp, isDesperate: Bool, besides: Set<SegmentID> = []
    ) -> [Victim] {
        let young = now - settings.grace
        let (pinned, segments) = (pinned, segments)
        let isDesperate = isDesperate || settings.capacityBytes.map { usedBytes > $0 } ?? false
        return policy.victims(toFree: bytes) { id in
            pinned.contains(id.asset) || besides.contains(id)
                || (!isDesperate && segments[id].map { $0.arrivedAt > young } ?? false)
        }
    }

    /// The bytes of the asset that the segment stands for.
    package func range(of segment: SegmentID) -> ByteRange { grid.run(of: segment.index) }

    private func parts(of range: ByteRange, of asset: AssetID) -> [(SegmentID, ByteRange)] {
        grid.indices(of: range).map { (SegmentID(asset: asset, index: $0), grid.run(of: $0).clamped(to: range)) }
    }
}
