package import CacheCore
package import CacheEngine

extension EvictionReport {
    /// The `EvictionReport` schema.
    package var json: JSON {
        [
            "dryRun": .bool(isDryRun), "freedBytes": .integer(freedBytes), "assets": .count(assets),
            "pinnedAssets": .count(pinnedAssets), "planId": planID.map { .string($0) } ?? .null,
            "entries": .array(entries.map(\.json)),
        ]
    }
}

extension EvictionReport.Entry {
    /// The evicted or selected ranges of one asset.
    var json: JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "ranges": .array(ranges.map(JSON.run)),
            "bytes": .integer(bytes),
        ]
    }
}

/// The body of `POST /v1/evictions`: the `EvictRequest` schema.
package struct EvictRequest: Sendable {
    /// The members of the schema.
    package static let keys = ["freeBytes", "targetBytes", "dryRun"]

    package var goal: EvictionGoal
    package var isDryRun: Bool

    /// Requires exactly one of `freeBytes` and `targetBytes`.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        switch (try fields.integer("freeBytes"), try fields.integer("targetBytes")) {
        case (let bytes?, nil): goal = .free(bytes: bytes)
        case (nil, let bytes?): goal = .target(bytes: bytes)
        case (nil, nil): throw fields.invalid("freeBytes", "freeBytes or targetBytes is expected here.")
        default: throw fields.invalid("targetBytes", "Only one of freeBytes and targetBytes is allowed.")
        }
        isDryRun = try fields.bool("dryRun") ?? false
    }
}

/// The body of `POST /v1/purges`: the `PurgeRequest` schema.
package struct PurgeRequest: Sendable {
    /// The members that select assets. At least one is required, so that an empty body does not purge everything.
    private static let conditions = [
        "origin", "prefix", "patterns", "tag", "keys", "urls", "assetIds", "contentType", "olderThanSeconds",
    ]
    /// The members of the schema.
    package static let keys = conditions + ["soft", "dryRun"]

    package var selection: AssetSelection
    /// Keys, of which an asset must have one.
    package var keys: [String]?
    /// URLs, of which one must name the asset.
    package var urls: [String]?
    /// The minimum time since the asset was created.
    var minAge: Duration?
    /// Whether the selected assets become stale instead of being deleted.
    package var isSoft: Bool
    package var isDryRun: Bool

    /// Reads the request. Empty strings are errors, because an empty prefix would select every asset.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        guard Self.conditions.contains(where: { fields.json($0) != nil }) else {
            let names = Self.conditions.joined(separator: ", ")
            throw fields.invalid("origin", "At least one of \(names) is expected here.")
        }
        selection = AssetSelection(
            origin: try Self.condition("origin", fields), prefix: try Self.condition("prefix", fields),
            patterns: try fields.values(
                "patterns", atMost: 100, "A pattern has 1 to 2048 characters and no backslash at its end.",
                KeyPattern.init),
            tag: try Self.condition("tag", fields),
            ids: try fields.values("assetIds", "An asset ID with 32 hexadecimal digits is expected here.") {
                AssetID($0)
            },
            contentType: try Self.condition("contentType", fields))
        keys = try Self.texts("keys", fields)
        urls = try Self.texts("urls", fields)
        minAge = try fields.seconds("olderThanSeconds")
        guard selection.contentType.map(OriginSettings.StoreRules.isPattern) ?? true else {
            throw fields.invalid("contentType", "A media type, as video/mp4 or video/*, is expected here.")
        }
        isSoft = try fields.bool("soft") ?? false
        isDryRun = try fields.bool("dryRun") ?? false
    }

    /// A list of strings that are not empty.
    private static func texts(_ key: String, _ fields: JSONFields) throws(CacheError) -> [String]? {
        try fields.values(key, "The string must not be empty.") { $0.isEmpty ? nil : $0 }
    }

    /// A string that is not empty.
    private static func condition(_ key: String, _ fields: JSONFields) throws(CacheError) -> String? {
        let text = try fields.string(key)
        guard text != "" else { throw fields.invalid(key, "The string must not be empty.") }
        return text
    }
}

extension PurgePlan.Progress {
    /// The `PurgePlan` schema.
    package var json: JSON {
        [
            "planId": .string(planID), "state": .string(state.rawValue), "soft": .bool(isSoft),
            "assets": .count(assets), "pinnedAssets": .count(pinnedAssets), "bytes": .integer(bytes),
            "assetsDone": .count(assetsDone), "assetsChanged": .count(assetsChanged),
            "freedBytes": .integer(freedBytes), "expiresAt": .instant(expiresAt),
        ]
    }
}
