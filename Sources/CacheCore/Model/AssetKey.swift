/// The normalised name of an asset; its identifier is the SHA-256 of `text`.
package struct AssetKey: Hashable, Sendable {
    /// One of three forms: `/o/{origin}/{path}`; an absolute URL without its query; or the text that the caller gave.
    /// The first two end with `?` and a digest of the significant query, if there is one. A query may be a signature
    /// and keys are stored in plain text, so only the digest is used.
    package let text: String
    /// The name of the mounted origin, or `Origin.absoluteName`.
    package let originName: String

    private init(text: String, originName: String) {
        self.text = text
        self.originName = originName
    }

    /// The key of an asset of a mounted origin; `path` is the part behind `/o/{origin}/`, as received.
    ///
    /// Throws `.malformedRequest` if the path is invalid or leaves the mount. `digest` shortens the query.
    package static func mounted(
        origin: Origin, path: String, query: String?, digest: (String) -> String
    ) throws(CacheError) -> AssetKey {
        let path = try MountedPath.normalized(path)
        let significant = origin.settings.significant(query)
        let suffix = significant.map { "?" + digest($0) } ?? ""
        return AssetKey(text: "/o/" + origin.name + "/" + path + suffix, originName: origin.name)
    }

    /// The key of an absolute URL without its CMCD parameter; `digest` shortens the query.
    package static func absolute(_ url: UpstreamURL, digest: (String) -> String) -> AssetKey {
        let significant = OriginSettings.KeyQuery.all.significant(CMCDParameter.removed(from: url.query))
        let suffix = significant.map { "?" + digest($0) } ?? ""
        return AssetKey(text: normalized(url) + suffix, originName: Origin.absoluteName)
    }

    /// The URL without its query. The percent-encoding of the path is normalised if that is possible.
    private static func normalized(_ url: UpstreamURL) -> String {
        let text = url.redacted
        guard text.hasSuffix(url.path), let path = PercentEncoding.normalized(path: url.path) else { return text }
        return text.dropLast(url.path.count) + path
    }

    /// Whether the bytes contain `://`.
    private static func holdsSchemeMark(_ text: String.UTF8View) -> Bool {
        var tail: (UInt8, UInt8) = (0, 0)
        for byte in text {
            if tail == (UInt8(ascii: ":"), UInt8(ascii: "/")), byte == UInt8(ascii: "/") { return true }
            tail = (tail.1, byte)
        }
        return false
    }

    /// A key that the caller gave, for an asset of `originName`. It has 1 to 2048 characters, no control characters,
    /// and cannot be mistaken for one of the other two forms. Throws `.invalidField("key")`.
    package static func named(
        _ text: String, originName: String = Origin.absoluteName
    ) throws(CacheError) -> AssetKey {
        guard (1...2048).contains(text.unicodeScalars.count) else {
            throw .invalid("key", "A key must have 1 to 2048 characters.")
        }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw .invalid("key", "A key must not contain control characters.")
        }
        // Compares bytes, not characters: a combining mark behind a slash would hide it.
        guard text.utf8.first != UInt8(ascii: "/"), !holdsSchemeMark(text.utf8) else {
            throw .invalid("key", "A key must not begin with / and must not contain ://.")
        }
        return AssetKey(text: text, originName: originName)
    }

    /// The upstream URL of an asset of a mounted origin: the base URL, the normalised path, and the complete query as
    /// received, without CMCD if the origin says so.
    ///
    /// Throws `.malformedRequest` as `mounted` does.
    package static func upstreamURL(
        origin: Origin, path: String, query: String?
    ) throws(CacheError) -> String {
        let path = try MountedPath.normalized(path)
        let base = origin.settings.baseURL
        let query = origin.settings.cmcd == .strip ? CMCDParameter.removed(from: query) : query
        let suffix = query.map { "?" + PercentEncoding.sendable(query: $0) } ?? ""
        return base + (base.hasSuffix("/") ? "" : "/") + path + suffix
    }
}

extension OriginSettings {
    /// The part of a query that belongs to the key: without CMCD, unless the keys contain it.
    package func significant(_ query: String?) -> String? {
        keyQuery.significant(cmcd == .key ? query : CMCDParameter.removed(from: query))
    }
}

extension OriginSettings.KeyQuery {
    /// The part of a query that belongs to the key, normalised and in the order received; nil if none is left.
    package func significant(_ query: String?) -> String? {
        guard let query else { return nil }  // an empty query differs from none (RFC 3986 §6.2.3)
        switch self {
        case .all: return PercentEncoding.normalized(query: query)
        case .none: return nil
        case .include(let names): return Self.filtered(query, Set(names.map { Array($0.utf8) }), keeping: true)
        case .exclude(let names): return Self.filtered(query, Set(names.map { Array($0.utf8) }), keeping: false)
        }
    }

    /// The parameters of the query with a name in `names`, or all others if `keeping` is false.
    private static func filtered(_ query: String, _ names: Set<[UInt8]>, keeping: Bool) -> String? {
        let kept = query.utf8.split(separator: UInt8(ascii: "&")).filter { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            return names.contains(PercentEncoding.decoded(Substring(name))) == keeping
        }
        if kept.isEmpty { return nil }
        return kept.map { PercentEncoding.normalized(query: String(Substring($0))) }.joined(separator: "&")
    }
}
