/// The eviction policy an administrator sets.
package struct PolicySettings: Hashable, Sendable {
    /// Real disk bytes the store may use; nil: only `minFreeDiskBytes` limits it.
    package var capacityBytes: Int64?
    /// Eviction starts above this part of the capacity…
    package var highWatermark: Double
    /// …and stops below this one.
    package var lowWatermark: Double
    /// What is left free on the disk for others.
    package var minFreeDiskBytes: Int64
    package var algorithm: EvictionAlgorithm
    /// Assets not read for this long go.
    package var maxIdle: Duration?
    /// Assets older than this go.
    package var maxAge: Duration?
    /// Bytes this young are spared, unless space is desperate.
    package var grace: Duration
    /// An asset is kept from so many uses on.
    package var minUses: Int
    /// The whole lengths of all pinned assets; nil: no limit.
    package var maxPinnedBytes: Int64?
    /// What assets with a tag may have together.
    package var tagQuotas: [String: Quota]

    /// The share of the capacity that is in use in the mean, once it is full.
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
