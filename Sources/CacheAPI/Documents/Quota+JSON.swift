package import CacheCore

extension Quota {
    /// The `Quota` schema.
    package var json: JSON { Setting<Quota>.all.json(of: self) }
}

extension QuotaStatus {
    /// The `QuotaStatus` schema.
    package var json: JSON {
        [
            "owner": owner.json, "cachedBytes": .integer(cachedBytes), "minBytes": .integer(quota.minBytes),
            "maxBytes": .bytes(quota.maxBytes),
        ]
    }
}

extension QuotaOwner {
    /// The `QuotaOwner` schema.
    package var json: JSON {
        switch self {
        case .origin(let name): ["origin": .string(name)]
        case .tag(let tag): ["tag": .string(tag)]
        }
    }
}
