package import CacheCore

extension AssetPatch {
    /// The members of the schema.
    package static let keys = ["pinned", "pinnedUntilAt", "tags", "ttlSeconds", "verify"]

    /// Reads the `AssetPatch` schema.
    ///
    /// Null removes the asset's own `ttlSeconds` or `verify`, so that the origin's setting applies, or the end of its
    /// pin; it is an error for other members. `pinnedUntilAt` implies a pin.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(
            json, accepting: Self.keys, nullable: ["pinnedUntilAt", "ttlSeconds", "verify"])
        self.init(
            isPinned: try fields.bool("pinned"), pinnedUntil: try fields.instant("pinnedUntilAt"),
            tags: try Self.tags(fields))
        if fields.has("pinnedUntilAt") {
            guard isPinned != false else {
                throw fields.invalid("pinnedUntilAt", "The field needs a pin; remove pinned: false.")
            }
            isPinned = true
        }
        if fields.has("verify") { verify = .some(try fields.choice("verify")) }
        if fields.has("ttlSeconds") { ttl = .some(try fields.seconds("ttlSeconds")) }
    }

    /// Reads `tags`; nil without the member.
    static func tags(_ fields: JSONFields) throws(CacheError) -> [String]? {
        try fields.values("tags", atMost: maxTags, "A tag has 1 to 128 characters.") {
            AssetRecord.isTag($0) ? $0 : nil
        }
    }
}
