/// Why bytes were taken off the disk.
package enum EvictionReason: String, Hashable, Sendable, CaseIterable {
    /// The store was above its high watermark, or a fill did not fit.
    case capacity
    /// The disk had less left than is to stay free.
    case freeDisk
    /// The asset was not read for too long…
    case idle
    /// …or was there for too long.
    case age
    /// Its origin, or one of its tags, had more than its quota.
    case quota
    /// An administrator asked for room…
    case request
    /// …or took the bytes out.
    case purge
    /// The disk had lost them.
    case corrupt
}

/// What was taken off the disk of one asset at one time.
package struct EvictionRecord: Hashable, Sendable {
    package var at: Timestamp
    package var reason: EvictionReason
    package var assetID: AssetID
    package var key: String
    package var origin: String
    package var bytes: Int64
    /// The runs that went, the first of them.
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

/// Which evictions are listed; nil leaves a field open.
package struct EvictionQuery: Hashable, Sendable {
    package var origin: String?
    package var assetID: AssetID?
    package var reason: EvictionReason?
    package var limit: Int
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
