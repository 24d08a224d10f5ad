package import CacheCore
package import CacheEngine

extension AssetPatch {
    package static let keys = ["pinned", "tags", "ttlSeconds"]

    /// Reads the `AssetPatch` schema; `null` takes the asset's own lifetime away, and is refused elsewhere.
    package init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        for key in ["pinned", "tags"] where fields.isNull(key) {
            throw fields.invalid(key, "null is not for this field.")
        }
        self.init(isPinned: try fields.bool("pinned"), tags: try Self.tags(fields))
        if fields.has("ttlSeconds") { ttl = .some(try fields.seconds("ttlSeconds")) }
    }

    private static func tags(_ fields: JSONFields) throws(CacheError) -> [String]? {
        guard let tags = try fields.strings("tags", atMost: 64) else { return nil }
        for (index, tag) in tags.enumerated() where !(1...128).contains(tag.utf8.count) {
            throw fields.invalid("tags[\(index)]", "A tag has 1 to 128 bytes.")
        }
        return tags
    }
}
