package import CacheCore

/// An asset as the management API reports it.
package struct AssetSummary: Sendable {
    package var record: AssetRecord
    /// Bytes in the asset's extents.
    package var cachedBytes: Int64
    /// Disk usage in bytes; an estimate while the asset is not open.
    package var diskBytes: Int64
    /// The path of the asset's file; nil unless the asset is open and completely on disk.
    package var filePath: String?
    package var activeReaders = 0
    package var activeFills = 0

    package init(
        record: AssetRecord, cachedBytes: Int64, diskBytes: Int64, filePath: String? = nil, activeReaders: Int = 0,
        activeFills: Int = 0
    ) {
        (self.record, self.cachedBytes, self.diskBytes) = (record, cachedBytes, diskBytes)
        (self.filePath, self.activeReaders, self.activeFills) = (filePath, activeReaders, activeFills)
    }

    /// Whether all bytes of the asset are cached.
    package var isComplete: Bool { record.generation.length == cachedBytes }
}

/// One bucket of an asset's map.
package struct MapBucket: Sendable {
    /// The bytes of the part. For a part of the time: its first byte, and the number of its bytes, which can be scattered.
    package var range: ByteRange
    /// The presentation times in seconds; nil: the part is one of the bytes.
    package var time: Range<Double>?
    /// The fraction of the range that is on disk, 0…1.
    package var cached: Double
    /// Counted reads of the bucket's segments; reads of one segment within five minutes count once.
    package var heat: Int64
}
