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
    var json: JSON {
        [
            "assetId": .string(assetID.description), "key": .string(key), "ranges": .array(ranges.map(JSON.run)),
            "bytes": .integer(bytes),
        ]
    }
}

/// The body of `POST /v1/evictions`.
package struct EvictionOrder: Sendable {
    package static let keys = ["freeBytes", "targetBytes", "dryRun"]

    package var goal: EvictionGoal
    package var isDryRun: Bool

    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        switch (try fields.integer("freeBytes"), try fields.integer("targetBytes")) {
        case (let bytes?, nil): goal = .free(bytes: bytes)
        case (nil, let bytes?): goal = .target(bytes: bytes)
        case (nil, nil): throw fields.invalid("freeBytes", "freeBytes or targetBytes is expected here.")
        default: throw fields.invalid("targetBytes", "Either freeBytes or targetBytes, not both.")
        }
        isDryRun = try fields.bool("dryRun") ?? false
    }
}

/// The body of `POST /v1/purges`.
package struct PurgeOrder: Sendable {
    private static let conditions = [
        "origin", "prefix", "patterns", "tag", "keys", "urls", "assetIds", "contentType", "olderThanSeconds",
    ]
    package static let keys = conditions + ["soft", "dryRun"]

    package var selection: PurgeSelection
    package var isSoft: Bool
    package var isDryRun: Bool

    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        guard Self.conditions.contains(where: { fields.json($0) != nil }) else {
            let names = Self.conditions.joined(separator: ", ")
            throw fields.invalid("origin", "At least one of \(names) is expected here.")
        }
        selection = PurgeSelection(
            origin: try Self.condition("origin", fields), prefix: try Self.condition("prefix", fields),
            patterns: try fields.values(
                "patterns", atMost: 100, "A pattern has 1 to 2048 characters and no backslash at its end.",
                KeyPattern.init),
            tag: try Self.condition("tag", fields),
            keys: try Self.texts("keys", fields), urls: try Self.texts("urls", fields),
            assetIDs: try fields.values("assetIds", "32 hexadecimal digits are expected here.") { AssetID($0) },
            contentType: try Self.condition("contentType", fields),
            minAge: try fields.seconds("olderThanSeconds"))
        guard selection.contentType.map(OriginSettings.StoreRules.isPattern) ?? true else {
            throw fields.invalid("contentType", "A media type, as video/mp4 or video/*, is expected here.")
        }
        isSoft = try fields.bool("soft") ?? false
        isDryRun = try fields.bool("dryRun") ?? false
    }

    private static func texts(_ key: String, _ fields: JSONFields) throws(CacheError) -> [String]? {
        try fields.values(key, "An empty string selects nothing.") { $0.isEmpty ? nil : $0 }
    }

    /// An empty prefix would be every asset's.
    private static func condition(_ key: String, _ fields: JSONFields) throws(CacheError) -> String? {
        let text = try fields.string(key)
        guard text != "" else { throw fields.invalid(key, "An empty string selects nothing.") }
        return text
    }
}

extension PurgePlan.Standing {
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
