package import CacheCore

/// The body of `POST /v1/purges`: the `PurgeRequest` schema.
package struct PurgeRequest: Sendable {
    private enum ContentTypeRule: TextRule {
        static let expectation = "A media type, as video/mp4 or video/*, is expected here."
        static func permits(_ text: String) -> Bool { OriginSettings.StoreRules.isPattern(text) }
    }

    // Empty strings are errors, because an empty prefix would select every asset.
    private struct Document: Decodable, Sendable {
        var origin, prefix: Checked<NotEmpty>?
        var patterns: List<100, KeyPattern>?
        var tag: Checked<NotEmpty>?
        var keys, urls: List<10_000, Checked<NotEmpty>>?
        var assetIds: List<10_000, AssetID>?
        var contentType: Checked<ContentTypeRule>?
        /// The minimum time since the asset was created.
        var olderThanSeconds: Limited<AnySeconds>?
        var soft, dryRun, shred: Bool?
    }

    /// The request as it was sent.
    let json: JSON
    private let document: Document

    /// The members of the schema.
    package static var members: [String] { JSON.keys(of: Document.self) }

    package var origin: String? { document.origin?.text }
    package var prefix: String? { document.prefix?.text }
    package var patterns: [KeyPattern]? { document.patterns?.values }
    /// Keys, of which an asset must have one.
    package var keys: [String]? { document.keys?.values.map(\.text) }
    /// URLs, of which one must name the asset.
    package var urls: [String]? { document.urls?.values.map(\.text) }
    package var assetIDs: [AssetID]? { document.assetIds?.values }
    /// Whether the selected assets become stale instead of being deleted.
    package var isSoft: Bool { document.soft ?? false }
    /// Whether nothing is changed.
    package var isDryRun: Bool { document.dryRun ?? false }
    /// Whether the keys of the assets are deleted first, with a receipt.
    package var isErasure: Bool { document.shred ?? false }

    /// Requires at least one condition, so that an empty body does not purge everything.
    package init(_ json: JSON) throws(CacheError) {
        self.json = json
        document = try json.decode()
        let conditions = Self.members.filter { !["soft", "dryRun", "shred"].contains($0) }
        guard conditions.contains(where: { json[$0] != nil }) else {
            throw .invalid("origin", "At least one of \(conditions.joined(separator: ", ")) is expected here.")
        }
        guard !isSoft || !isErasure else {
            throw .invalid("shred", "A soft purge deletes nothing; remove soft or shred.")
        }
    }

    /// The request to purge one asset.
    init(of id: AssetID, isSoft: Bool) throws(CacheError) {
        try self.init(["assetIds": [.string(id.description)], "soft": .bool(isSoft)])
    }

    /// The request with another value of a member; nil: without it.
    func with(_ member: String, _ value: JSON?) throws(CacheError) -> PurgeRequest {
        try PurgeRequest(json.merged(with: .object([JSON.Member(member, value ?? .null)])))
    }

    func selection(at now: Timestamp) -> AssetSelection {
        AssetSelection(
            origin: origin, prefix: prefix, patterns: patterns, tag: document.tag?.text, ids: assetIDs,
            contentType: document.contentType?.text,
            createdBefore: document.olderThanSeconds.map { now - $0.duration })
    }
}
