package import CacheCore

extension AssetPatch {
    private struct Document: Decodable {
        var pinned: Bool?
        var pinnedUntilAt: Omittable<Timestamp>
        var tags: TagList?
        var ttlSeconds: Omittable<Limited<AnySeconds>>
        var verify: Omittable<Verification>
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// Reads the `AssetPatch` schema.
    ///
    /// Null removes the asset's own `ttlSeconds` or `verify`, so that the origin's setting applies, or the end of its
    /// pin; it is an error for other members. `pinnedUntilAt` implies a pin.
    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        let (end, setsEnd) = (document.pinnedUntilAt.value, document.pinnedUntilAt != .absent)
        if setsEnd, document.pinned == false {
            throw .invalid("pinnedUntilAt", "The field needs a pin; remove pinned: false.")
        }
        self.init(
            isPinned: setsEnd ? true : document.pinned, pinnedUntil: end, tags: document.tags?.values.map(\.text),
            ttl: document.ttlSeconds.map(\.duration), verify: document.verify)
    }
}

typealias TagList = List<64, Checked<TagRule>>

enum TagRule: TextRule {
    static let expectation = "A tag has 1 to 128 characters."
    static func permits(_ text: String) -> Bool { AssetRecord.isTag(text) }
}
