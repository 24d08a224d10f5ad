/// The eviction policy that an administrator sets.
package struct PolicySettings: Hashable, Sendable {
    /// Disk bytes that the store may allocate; nil: only `minFreeDiskBytes` limits it.
    package var capacityBytes: Int64?
    /// Eviction starts when usage exceeds this share of the capacity, above 0 and at most 1.
    package var highWatermark: Double
    /// Eviction stops at this share of the capacity, below `highWatermark`.
    package var lowWatermark: Double
    /// Bytes of the file system that stay free for other programs.
    package var minFreeDiskBytes: Int64
    package var algorithm: EvictionAlgorithm
    /// Assets not read for this long are evicted; nil: never for this reason.
    package var maxIdle: Duration?
    /// Assets older than this are evicted; nil: never for this reason.
    package var maxAge: Duration?
    /// New bytes are not evicted for this long, up to a twentieth of the usable space, unless a fill waits for space or
    /// the store exceeds its capacity.
    package var grace: Duration
    /// Admission: an asset is stored from this use on; 1: always.
    package var minUses: Int
    /// The limit for the lengths of all pinned assets together, in bytes; nil: no limit.
    package var maxPinnedBytes: Int64?
    /// The quota of each tag. Quotas of origins are settings of the origin.
    package var tagQuotas: [String: Quota]

    /// The mean share of the capacity that a full store uses: the middle of both watermarks.
    package var usedShare: Double { (highWatermark + lowWatermark) / 2 }

    package init(
        capacityBytes: Int64? = 20 << 30, highWatermark: Double = 0.95, lowWatermark: Double = 0.85,
        minFreeDiskBytes: Int64 = 1 << 30, algorithm: EvictionAlgorithm = .s3fifo, maxIdle: Duration? = nil,
        maxAge: Duration? = nil, grace: Duration = .seconds(60), minUses: Int = 1,
        maxPinnedBytes: Int64? = nil, tagQuotas: [String: Quota] = [:]
    ) {
        self.capacityBytes = capacityBytes
        self.highWatermark = highWatermark
        self.lowWatermark = lowWatermark
        self.minFreeDiskBytes = minFreeDiskBytes
        self.algorithm = algorithm
        self.maxIdle = maxIdle
        self.maxAge = maxAge
        self.grace = grace
        self.minUses = minUses
        self.maxPinnedBytes = maxPinnedBytes
        self.tagQuotas = tagQuotas
    }
}
