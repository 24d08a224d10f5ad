package import CacheCore

/// The asset of a request, for logs. It contains no query.
package struct AssetName: Hashable, Sendable {
    /// Nil: the reference was not resolved.
    package var id: AssetID?
    /// Nil: unknown.
    package var key: String?
    package var origin: String

    package init(id: AssetID?, key: String?, origin: String) {
        (self.id, self.key, self.origin) = (id, key, origin)
    }
}

/// A resolved reference: the identity of the asset, its settings and its current upstream URL.
struct AssetTarget: Sendable {
    let id: AssetID
    let key: String
    let originName: String
    let settings: OriginSettings
    /// The complete URL with its query, which may be a signature; used for the upstream only.
    let url: String
    /// The path of the URL; its extension determines the media type if the upstream states none.
    let path: String
    /// The reader's fields that select this representation (RFC 9111 §4.1); sent upstream.
    var variant: HeaderList = [:]
    /// The fields that the origin's `forward` names, of the reader that causes requests; sent to the origin's own host,
    /// and never stored. Nil: no reader of an origin with `forward` is the cause.
    var forwarded: HeaderList?
    /// The `CDN-Loop` field of the latest reader's request (RFC 8586): the caches that it has passed.
    var cdnLoop: String?
    /// Whether fetched bytes must not be stored.
    var storesNothing = false

    /// The asset in logs.
    var name: AssetName { AssetName(id: id, key: key, origin: originName) }

    /// The URL, if the reader's own `Authorization` is sent there.
    var readerURL: String? { settings.forwardsAuthorization ? url : nil }
}

extension AssetRecord {
    /// Whether the asset was last fetched from a URL below `baseURL`.
    func isBelow(_ baseURL: String) -> Bool {
        var base = baseURL[...]
        while base.last == "/" { base.removeLast() }
        return url.hasPrefix(base + "/")
    }
}

extension AssetTarget {
    /// The target of the representation that `fields` select: a separate asset, with a digest of the fields appended to
    /// this key. Without fields: the target of the base asset.
    func variant(_ fields: HeaderList) -> AssetTarget {
        let base = variant.fields.isEmpty ? key : String(key.dropLast(AssetRecord.variantMarkBytes))
        let text = fields.fields.map { "\($0.name):\($0.value)" }.joined(separator: "\n")
        let key = fields.fields.isEmpty ? base : base + " " + AssetID(naming: text).description.prefix(16)
        return AssetTarget(
            id: AssetID(naming: key), key: key, originName: originName, settings: settings, url: url, path: path,
            variant: fields, forwarded: forwarded, cdnLoop: cdnLoop)
    }

    /// Whether the origin's base URL has changed since the record was made: the bytes come from another server.
    /// Absolute URLs under a given key may change freely.
    func hasMoved(since record: AssetRecord) -> Bool {
        originName != Origin.absoluteName && record.url.withoutQuery != url.withoutQuery
    }

    /// The same target for a state that all readers share.
    var withoutReader: AssetTarget {
        var target = self
        target.forwarded = nil
        return target
    }

    /// The same target for a read that stores nothing.
    var unstored: AssetTarget {
        var target = self
        target.storesNothing = true
        return target
    }
}
