package import CacheCore

extension Quota {
    package static let keys = ["minBytes", "maxBytes"]

    /// The `Quota` schema.
    package var json: JSON { ["minBytes": .integer(minBytes), "maxBytes": .bytes(maxBytes)] }

    /// This one with the fields of `json` put over it; null: there is no limit.
    func merging(_ json: JSON, at path: String) throws(CacheError) -> Quota {
        let fields = try JSONFields(json, at: path, accepting: Self.keys, nullable: ["maxBytes"])
        var merged = self
        if let bytes = try fields.integer("minBytes") { merged.minBytes = bytes }
        if fields.has("maxBytes") { merged.maxBytes = try fields.integer("maxBytes") }
        return merged
    }
}

extension QuotaStanding {
    /// The `QuotaStanding` schema.
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
