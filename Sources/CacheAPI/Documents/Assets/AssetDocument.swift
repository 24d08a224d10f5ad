package import CacheCore
package import CacheEngine

/// The `Asset` schema.
package struct AssetDocument: Codable {
    package var assetId: AssetID
    package var key, origin, url: String
    package var generation: Int64
    package var contentLength: Int64?
    package var contentType, etag, lastModified: String?
    package var acceptsRanges: Bool?
    package var cachedBytes, diskBytes: Int64
    /// Cached bytes ÷ length; nil for an unknown length, and for an asset without bytes.
    package var cachedRatio: Double?
    package var complete: Bool
    package var filePath: String?
    package var hits: Int64
    package var createdAt, lastAccessAt: Timestamp
    package var freshUntilAt: Timestamp?
    package var pinned: Bool
    package var pinnedUntilAt: Timestamp?
    package var tags: [String]
    package var ttlSeconds: Double?
    package var verify: String?
    package var variant: [String]
    package var activeReaders, activeFills: Int
}

extension AssetDocument {
    package init(_ asset: AssetSummary) {
        let (record, generation) = (asset.record, asset.record.generation)
        self.init(
            assetId: record.id, key: record.key, origin: record.origin, url: record.url.withoutQuery,
            generation: generation.number, contentLength: generation.length, contentType: generation.contentType,
            etag: generation.validators.entityTag?.description, lastModified: generation.validators.lastModified,
            acceptsRanges: generation.acceptsRanges, cachedBytes: asset.cachedBytes, diskBytes: asset.diskBytes,
            cachedRatio: generation.length.flatMap { asset.cachedBytes.ratio(to: $0) }, complete: asset.isComplete,
            filePath: asset.filePath, hits: record.hits, createdAt: record.createdAt,
            lastAccessAt: record.lastAccessAt, freshUntilAt: generation.freshUntil, pinned: record.isPinned,
            pinnedUntilAt: record.pinnedUntil, tags: record.tags, ttlSeconds: record.ttl?.documentSeconds,
            verify: record.verify?.rawValue, variant: record.variant.fields.map(\.name),
            activeReaders: asset.activeReaders, activeFills: asset.activeFills)
    }
}

/// The number of fills that a request has cancelled.
struct CancelledFillsDocument: Codable {
    var cancelled: Int
}

/// The number of bytes that a request has removed.
struct DroppedBytesDocument: Codable {
    var droppedBytes: Int64
}

/// The map of an asset.
struct AssetMapDocument: Codable {
    /// The `MapBucket` schema.
    struct Bucket: Codable {
        var offset, length: Int64
        var cached: Double
        var heat: Int64
        var startSeconds, endSeconds: Double?
    }

    var buckets: [Bucket]
}

extension AssetMapDocument.Bucket {
    init(_ bucket: MapBucket) {
        self.init(
            offset: bucket.range.lowerBound, length: bucket.range.length, cached: bucket.cached, heat: bucket.heat,
            startSeconds: bucket.time?.lowerBound.mediaTime, endSeconds: bucket.time?.upperBound.mediaTime)
    }
}
