/// The reason why bytes were removed from the disk.
package enum EvictionReason: String, Hashable, Sendable, CaseIterable {
    /// The store exceeded its high watermark, or a fill did not fit.
    case capacity
    /// The file system had less than `minFreeDiskBytes` free.
    case freeDisk
    /// The asset was not read for `maxIdle`.
    case idle
    /// The asset was older than `maxAge`.
    case age
    /// The origin or a tag of the asset exceeded its maximum quota.
    case quota
    /// An administrator requested an eviction.
    case request
    /// An administrator purged the bytes.
    case purge
    /// The bytes were damaged or missing on disk.
    case corrupt
}

/// One entry of the eviction log: the bytes of one asset that were removed at one time.
package struct EvictionRecord: Hashable, Sendable {
    package var at: Timestamp
    package var reason: EvictionReason
    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var bytes: Int64
    /// The removed ranges; at most the first 128 of them.
    package var ranges: [ByteRange]

    package init(
        at: Timestamp, reason: EvictionReason, assetID: AssetID, key: String, origin: String, bytes: Int64,
        ranges: [ByteRange]
    ) {
        self.at = at
        self.reason = reason
        self.assetID = assetID
        self.key = key
        self.origin = origin
        self.bytes = bytes
        self.ranges = Array(ranges.prefix(Self.mostRanges))
    }

    private static let mostRanges = 128
}

/// A page of the eviction log; a nil field does not filter.
package struct EvictionQuery: Hashable, Sendable {
    package var origin: String?
    package var assetID: AssetID?
    package var reason: EvictionReason?
    /// The maximum number of records in the page.
    package var limit: Int
    /// The cursor that the previous page returned; nil: the first page.
    package var cursor: String?

    package init(
        origin: String? = nil, assetID: AssetID? = nil, reason: EvictionReason? = nil, limit: Int = 100,
        cursor: String? = nil
    ) {
        self.origin = origin
        self.assetID = assetID
        self.reason = reason
        self.limit = limit
        self.cursor = cursor
    }
}
