package import CacheCore
package import CacheEngine

extension AssetSummary {
    /// The `Asset` schema.
    package var json: JSON {
        let generation = record.generation
        return [
            "assetId": .string(record.id.description), "key": .string(record.key), "origin": .string(record.origin),
            "url": .string(Self.withoutQuery(record.url)), "generation": .integer(generation.number),
            "contentLength": .bytes(generation.length), "contentType": .text(generation.contentType),
            "etag": .text(generation.validators.entityTag?.description),
            "lastModified": .text(generation.validators.lastModified),
            "acceptsRanges": .optional(generation.acceptsRanges, JSON.bool),
            "cachedBytes": .integer(cachedBytes), "diskBytes": .integer(diskBytes), "complete": .bool(isComplete),
            "filePath": .text(filePath), "hits": .integer(record.hits), "createdAt": .instant(record.createdAt),
            "lastAccessAt": .instant(record.lastAccessAt), "freshUntilAt": .instant(generation.freshUntil),
            "pinned": .bool(record.isPinned), "pinnedUntilAt": .instant(record.pinnedUntil),
            "tags": .array(record.tags.map(JSON.string)),
            "ttlSeconds": .seconds(record.ttl), "verify": .text(record.verify?.rawValue),
            "variant": .array(record.variant.fields.map { .string($0.name) }),
            "activeReaders": .count(activeReaders),
            "activeFills": .count(activeFills),
        ]
    }

    /// Removes the query, which may be a signature.
    private static func withoutQuery(_ url: String) -> String {
        url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? url
    }
}

extension MapBucket {
    /// The `MapBucket` schema.
    package var json: JSON {
        [
            "offset": .integer(range.lowerBound), "length": .integer(range.length), "cached": .number(cached),
            "heat": .integer(heat), "startSeconds": .optional(time) { .mediaTime($0.lowerBound) },
            "endSeconds": .optional(time) { .mediaTime($0.upperBound) },
        ]
    }
}
