package import CacheCore
package import CacheEngine

extension EvictionRecord {
    /// The `Eviction` schema.
    package var json: JSON {
        [
            "at": .instant(at), "reason": .string(reason.rawValue), "assetId": .string(assetID.description),
            "key": .string(key), "origin": .string(origin), "bytes": .integer(bytes),
            "ranges": .array(ranges.map(JSON.run)),
        ]
    }
}

extension EvictionCandidate {
    /// The `EvictionCandidate` schema, with the age at `now`.
    package func json(at now: Timestamp) -> JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "origin": .string(origin),
            "range": .run(range), "bytes": .integer(account.bytes), "reason": .string(account.reason.rawValue),
            "quota": .optional(account.quotaOwner, \.json),
            "queue": .optional(account.queue?.rawValue) { .string($0) }, "reads": .integer(Int64(account.reads)),
            "priority": .optional(account.priority) { .number($0) }, "arrivedAt": .instant(account.arrivedAt),
            "ageSeconds": .seconds(max(.zero, now.since(account.arrivedAt))),
            "lastReadAt": .instant(account.lastReadAt),
        ]
    }
}
