package import CacheCore
package import CacheEngine

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
