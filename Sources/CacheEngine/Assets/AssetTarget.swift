import CacheCore

/// A reference resolved: which asset it is, and where its bytes come from at present.
struct AssetTarget: Sendable {
    let id: AssetID
    let key: String
    let originName: String
    let settings: OriginSettings
    /// In full, signature and all; for the upstream only.
    let url: String
    /// The path, for the type that its extension tells.
    let path: String
    /// The reader's fields that choose this representation; sent upstream.
    var variant: HeaderList = [:]
    /// Which caches the latest reader's request has been through (RFC 8586).
    var cdnLoop: String?
    /// Whether nothing of what is fetched for it may be kept.
    var keepsNothing = false
}

extension AssetRecord {
    /// Whether it was last fetched from below `baseURL`.
    func isBelow(_ baseURL: String) -> Bool {
        var base = baseURL[...]
        while base.last == "/" { base.removeLast() }
        return url.hasPrefix(base + "/")
    }
}

extension AssetTarget {
    /// The representation that `fields` choose: an asset of its own, whose key is this one's with a digest behind it. No
    /// fields: the one that is found at first.
    func variant(_ fields: HeaderList) -> AssetTarget {
        let base = variant.fields.isEmpty ? key : String(key.dropLast(AssetRecord.variantMarkBytes))
        let text = fields.fields.map { "\($0.name):\($0.value)" }.joined(separator: "\n")
        let key = fields.fields.isEmpty ? base : base + " " + AssetID(naming: text).description.prefix(16)
        return AssetTarget(
            id: AssetID(naming: key), key: key, originName: originName, settings: settings, url: url, path: path,
            variant: fields, cdnLoop: cdnLoop)
    }

    /// Whether the origin's base URL has changed since the record was made: the bytes are those of another server. Absolute URLs
    /// under a given key may change as they like.
    func hasMoved(since record: AssetRecord) -> Bool {
        originName != Origin.absoluteName && record.url.withoutQuery != url.withoutQuery
    }

    /// The same, for a read that leaves no trace.
    var unkept: AssetTarget {
        var target = self
        target.keepsNothing = true
        return target
    }
}
