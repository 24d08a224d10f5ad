package import CacheCore
package import CacheEngine

extension AssetPatch {
    package static let keys = ["pinned", "pinnedUntilAt", "tags", "ttlSeconds", "verify"]

    /// Reads the `AssetPatch` schema; `null` takes the asset's own lifetime away, or its own word on
    /// checks, and is refused elsewhere.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(
            json, accepting: Self.keys, nullable: ["pinnedUntilAt", "ttlSeconds", "verify"])
        self.init(
            isPinned: try fields.bool("pinned"), pinnedUntil: try fields.instant("pinnedUntilAt"),
            tags: try Self.tags(fields))
        if fields.has("pinnedUntilAt") {
            guard isPinned != false else {
                throw fields.invalid("pinnedUntilAt", "It is for a pin, and there is none with pinned: false.")
            }
            isPinned = true
        }
        if fields.has("verify") { verify = .some(try fields.choice("verify")) }
        if fields.has("ttlSeconds") { ttl = .some(try fields.seconds("ttlSeconds")) }
    }

    /// Reads `tags`; nil where there are none given.
    static func tags(_ fields: JSONFields) throws(CacheError) -> [String]? {
        try fields.values("tags", atMost: maxTags, "A tag has 1 to 128 characters.") {
            AssetRecord.isTag($0) ? $0 : nil
        }
    }
}
