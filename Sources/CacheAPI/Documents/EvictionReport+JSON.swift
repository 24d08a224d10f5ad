package import CacheCore
package import CacheEngine

extension EvictionReport {
    /// The `EvictionReport` schema.
    package var json: JSON {
        [
            "dryRun": .bool(isDryRun), "freedBytes": .integer(freedBytes), "assets": .count(assets),
            "pinnedAssets": .count(pinnedAssets), "planId": planID.map { .string($0) } ?? .null,
            "entries": .array(entries.map(\.json)), "receipt": receipt?.json ?? .null,
        ]
    }
}

extension ErasureReceipt {
    /// The `ErasureReceipt` schema.
    var json: JSON {
        [
            "sequence": .integer(sequence), "erasedAt": .instant(erasedAt),
            "assets": .array(
                assets.map { asset in
                    [
                        "assetId": .string(asset.id.description), "nameDigest": .string(asset.nameDigest),
                        "generation": .integer(asset.generation), "masterKey": .string(asset.masterKey),
                    ]
                }),
            "logEmptied": .bool(isLogEmpty), "copies": .array(copies.map(JSON.string)),
            "coverage": .string(
                "The keys are deleted in this store. Copies of the data directory from before become unreadable when the "
                    + "named master keys, and those that sealed the content before earlier rotations, are destroyed; rotate "
                    + "after the erasure to make that possible. Freed blocks of the file system and "
                    + "of the device are not covered."),
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
    private struct Document: Decodable {
        var freeBytes, targetBytes: Limited<NotNegative>?
        var dryRun: Bool?
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    package var goal: EvictionGoal
    package var isDryRun: Bool

    /// Requires exactly one of `freeBytes` and `targetBytes`.
    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        isDryRun = document.dryRun ?? false
        switch (document.freeBytes?.value, document.targetBytes?.value) {
        case (let bytes?, nil): goal = .free(bytes: bytes)
        case (nil, let bytes?): goal = .target(bytes: bytes)
        case (nil, nil): throw .invalid("freeBytes", "freeBytes or targetBytes is expected here.")
        default: throw .invalid("targetBytes", "Only one of freeBytes and targetBytes is allowed.")
        }
    }
}

/// The body of `POST /v1/purges`: the `PurgeRequest` schema.
package struct PurgeRequest: Decodable, Sendable {
    private enum ContentTypeRule: TextRule {
        static let expectation = "A media type, as video/mp4 or video/*, is expected here."
        static func permits(_ text: String) -> Bool { OriginSettings.StoreRules.isPattern(text) }
    }

    // Empty strings are errors, because an empty prefix would select every asset.
    private(set) var origin, prefix: Checked<NotEmpty>?
    private(set) var patterns: List<100, KeyPattern>?
    private var tag: Checked<NotEmpty>?
    /// Keys, of which an asset must have one, and URLs, of which one must name the asset.
    private(set) var keys, urls: List<10_000, Checked<NotEmpty>>?
    private(set) var assetIds: List<10_000, AssetID>?
    private var contentType: Checked<ContentTypeRule>?
    /// The minimum time since the asset was created.
    private var olderThanSeconds: Limited<AnySeconds>?
    /// Whether the selected assets become stale instead of being deleted, and whether nothing is changed.
    private(set) var soft, dryRun: Bool?
    /// Whether the keys of the assets are deleted first, with a receipt.
    private(set) var shred: Bool?

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Self.self) }

    func selection(at now: Timestamp) -> AssetSelection {
        AssetSelection(
            origin: origin?.text, prefix: prefix?.text, patterns: patterns?.values, tag: tag?.text,
            ids: assetIds?.values, contentType: contentType?.text,
            createdBefore: olderThanSeconds.map { now - $0.duration })
    }

    /// Requires at least one condition, so that an empty body does not purge everything.
    package init(_ json: JSON) throws(CacheError) {
        self = try json.decode()
        let conditions = Self.keys.filter { !["soft", "dryRun", "shred"].contains($0) }
        guard conditions.contains(where: { json[$0] != nil }) else {
            throw .invalid("origin", "At least one of \(conditions.joined(separator: ", ")) is expected here.")
        }
        guard soft != true || shred != true else {
            throw .invalid("shred", "A soft purge deletes nothing; remove soft or shred.")
        }
    }
}

extension PurgePlan.Progress {
    /// The `PurgePlan` schema.
    package var json: JSON {
        [
            "planId": .string(planID), "state": .string(state.rawValue), "soft": .bool(isSoft),
            "assets": .count(assets), "pinnedAssets": .count(pinnedAssets), "bytes": .integer(bytes),
            "assetsDone": .count(assetsDone), "assetsChanged": .count(assetsChanged),
            "freedBytes": .integer(freedBytes), "expiresAt": .instant(expiresAt), "shred": .bool(isErasure),
            "receipt": receipt?.json ?? .null,
        ]
    }
}
