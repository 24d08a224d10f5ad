package import CacheCore

/// An asset as administrators see it.
package struct AssetSummary: Sendable {
    package var record: AssetRecord
    package var cachedBytes: Int64
    /// Real disk blocks.
    package var diskBytes: Int64
    /// Where its bytes lie, when all of them are there.
    package var filePath: String?
    package var activeReaders: Int
    package var activeFills: Int

    package init(
        record: AssetRecord, cachedBytes: Int64, diskBytes: Int64, filePath: String? = nil, activeReaders: Int = 0,
        activeFills: Int = 0
    ) {
        self.record = record
        self.cachedBytes = cachedBytes
        self.diskBytes = diskBytes
        self.filePath = filePath
        self.activeReaders = activeReaders
        self.activeFills = activeFills
    }

    package var isComplete: Bool { record.generation.length == cachedBytes }
}

/// One bucket of an asset's map.
package struct MapBucket: Sendable {
    package var range: ByteRange
    /// The part of it that is on disk, 0…1.
    package var cached: Double
    /// Reads of its segments; those of one within five minutes count as one.
    package var heat: Int64

    package init(range: ByteRange, cached: Double, heat: Int64) {
        self.range = range
        self.cached = cached
        self.heat = heat
    }
}

/// What an administrator changes of an asset; nil leaves a field as it is.
package struct AssetPatch: Sendable {
    /// The most tags of an asset.
    package static let maxTags = 64

    package var isPinned: Bool?
    /// With a pin: until when; nil: until it is taken away.
    package var pinnedUntil: Timestamp?
    package var tags: [String]?
    /// The inner nil takes the asset's own lifetime away.
    package var ttl: Duration??
    /// The inner nil: as its origin says.
    package var verify: Verification??

    package init(
        isPinned: Bool? = nil, pinnedUntil: Timestamp? = nil, tags: [String]? = nil, ttl: Duration?? = nil,
        verify: Verification?? = nil
    ) {
        self.isPinned = isPinned
        self.pinnedUntil = pinnedUntil
        self.tags = tags
        self.ttl = ttl
        self.verify = verify
    }
}
