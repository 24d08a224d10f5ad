/// What names an asset; its identifier is the SHA-256 of `text`.
package struct AssetKey: Hashable, Sendable {
    /// `/o/{origin}/{path}`, an absolute URL without its query, either with `?` and a digest of the significant query
    /// behind it (a query may be a signature, and keys are stored in the clear); or what the caller gave.
    package let text: String
    /// The mounted origin's name, or `Origin.absoluteName`.
    package let originName: String

    private init(text: String, originName: String) {
        self.text = text
        self.originName = originName
    }

    /// The key of what a mounted origin has at `path`: what stands behind `/o/{origin}/`, as received.
    ///
    /// Throws `.malformedRequest` where the path is broken or climbs out of the mount. `digest` shortens the query.
    package static func mounted(
        origin: Origin, path: String, query: String?, digest: (String) -> String
    ) throws(CacheError) -> AssetKey {
        let path = try MountedPath.normalized(path)
        let significant = origin.settings.keyQuery.significant(query)
        let suffix = significant.map { "?" + digest($0) } ?? ""
        return AssetKey(text: "/o/" + origin.name + "/" + path + suffix, originName: origin.name)
    }

    /// The key of an absolute URL.
    package static func absolute(_ url: UpstreamURL, digest: (String) -> String) -> AssetKey {
        let significant = OriginSettings.KeyQuery.all.significant(url.query)
        let suffix = significant.map { "?" + digest($0) } ?? ""
        return AssetKey(text: normalized(url) + suffix, originName: Origin.absoluteName)
    }

    /// The URL without its query, the path's encoding in normal form where it has one.
    private static func normalized(_ url: UpstreamURL) -> String {
        let text = url.redacted
        guard text.hasSuffix(url.path), let path = PercentEncoding.normalized(path: url.path) else { return text }
        return text.dropLast(url.path.count) + path
    }

    private static func holdsSchemeMark(_ text: String.UTF8View) -> Bool {
        var tail: (UInt8, UInt8) = (0, 0)
        for byte in text {
            if tail == (UInt8(ascii: ":"), UInt8(ascii: "/")), byte == UInt8(ascii: "/") { return true }
            tail = (tail.1, byte)
        }
        return false
    }

    /// A key the caller gave, for an asset of `originName`: 1–2048 characters, no control characters, and nothing that could
    /// be taken for one of the other two kinds. Throws `.invalidField("key")`.
    package static func named(
        _ text: String, originName: String = Origin.absoluteName
    ) throws(CacheError) -> AssetKey {
        guard (1...2048).contains(text.unicodeScalars.count) else {
            throw CacheError(.invalidField("key"), "A key has 1 to 2048 characters.")
        }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw CacheError(.invalidField("key"), "A key holds no control characters.")
        }
        // Bytes, not characters: a combining mark behind a slash would hide it.
        guard text.utf8.first != UInt8(ascii: "/"), !holdsSchemeMark(text.utf8) else {
            throw CacheError(.invalidField("key"), "A key does not begin with / and does not hold ://.")
        }
        return AssetKey(text: text, originName: originName)
    }

    /// Where a mounted origin's asset is fetched: the base URL, the path in normal form, all of the query as received.
    ///
    /// Throws `.malformedRequest` as `mounted` does.
    package static func upstreamURL(
        origin: Origin, path: String, query: String?
    ) throws(CacheError) -> String {
        let path = try MountedPath.normalized(path)
        let base = origin.settings.baseURL
        let suffix = query.map { "?" + PercentEncoding.sendable(query: $0) } ?? ""
        return base + (base.hasSuffix("/") ? "" : "/") + path + suffix
    }
}

extension OriginSettings.KeyQuery {
    /// The part of a query that names the asset, in normal form and in the order received; nil where none is left.
    package func significant(_ query: String?) -> String? {
        guard let query else { return nil }  // an empty one is not none (RFC 3986 §6.2.3)
        switch self {
        case .all: return PercentEncoding.normalized(query: query)
        case .none: return nil
        case .include(let names): return Self.filtered(query, Set(names.map { Array($0.utf8) }), keeping: true)
        case .exclude(let names): return Self.filtered(query, Set(names.map { Array($0.utf8) }), keeping: false)
        }
    }

    private static func filtered(_ query: String, _ names: Set<[UInt8]>, keeping: Bool) -> String? {
        let kept = query.utf8.split(separator: UInt8(ascii: "&")).filter { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            return names.contains(PercentEncoding.decoded(Substring(name))) == keeping
        }
        if kept.isEmpty { return nil }
        return kept.map { PercentEncoding.normalized(query: String(Substring($0))) }.joined(separator: "&")
    }
}
