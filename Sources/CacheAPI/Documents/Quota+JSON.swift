package import CacheCore

extension Quota {
    /// The members of the schema.
    package static let keys = ["minBytes", "maxBytes"]

    /// The `Quota` schema.
    package var json: JSON { ["minBytes": .integer(minBytes), "maxBytes": .bytes(maxBytes)] }

    /// Returns this quota with the members of `json` applied. Null for `maxBytes` removes the limit.
    ///
    /// - Parameter path: The path of `json` in the request body, for errors.
    func merging(_ json: JSON, at path: String) throws(CacheError) -> Quota {
        let fields = try JSONFields(json, at: path, accepting: Self.keys, nullable: ["maxBytes"])
        var merged = self
        if let bytes = try fields.integer("minBytes") { merged.minBytes = bytes }
        if fields.has("maxBytes") { merged.maxBytes = try fields.integer("maxBytes") }
        return merged
    }
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
