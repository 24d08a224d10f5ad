package import CacheCore
import CacheStore
import Cryptography

/// Resolves a reference to its asset and its upstream URL, and opens the asset.
struct AssetResolver: Sendable {
    let origins: OriginTable
    let context: EngineContext

    var upstream: any Upstream { context.upstreams.client }
    var catalog: Catalog { context.store.catalog }

    /// The target of a reference. The catalog is not read for an asset that is open. Throws `.notFound` for an unknown origin or asset, `.malformedRequest` for an invalid URL, and
    /// `.upstreamForbidden` for a host that is not permitted.
    func resolve(_ reference: AssetReference) async throws(CacheError) -> AssetTarget {
        switch reference {
        case .url(let text, let key): try absolute(text, key: key)
        case .mounted(let origin, let path, let key): try mounted(origin, path, key: key)
        case .known(let id): try await known(id)
        }
    }

    /// Acquires the asset of a target: from the table of open assets, from the catalog, or as a new one. The caller
    /// must release it.
    func open(_ target: AssetTarget) async throws(CacheError) -> OpenAsset {
        // 1. The table has no such asset: record its removal count.
        // 2. Load the row, unless a removal is in progress.
        // 3. Insert the asset into the table. This fails if a removal has begun or ended since step 1, because the row
        //    may be outdated: start again.
        while true {
            if let asset = context.openAssets.acquire(target.id) {
                asset.retarget(target)
                return asset
            }
            let moment = context.openAssets.moment(for: target.id, context.commits)
            let loaded = moment.isRemoving ? nil : try await context.store.load(target.id)
            if let loaded, !context.store.isUsable(loaded, encrypted: target.settings.isEncrypted) {
                try await discardBytes(of: loaded)
                continue
            }
            let asset =
                loaded.map { OpenAsset(target: target, loaded: $0, context: context) }
                ?? OpenAsset(target: target, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }

    /// Removes bytes that cannot be used, so that they are fetched again (``Store/isUsable(_:encrypted:)``).
    private func discardBytes(of loaded: LoadedAsset) async throws(CacheError) {
        let id = loaded.record.id
        context.openAssets.beginRemoval(of: [id])
        defer { context.openAssets.endRemoval(of: [id]) }
        guard context.openAssets[id] == nil else { return }
        let diskBytes = try await context.store.discardBytes(of: loaded)
        context.space.used(changedBy: -diskBytes)
        context.space.with { ledger in for run in loaded.extents.runs { ledger.gone(run, of: id) } }
        context.evictionLog.note(
            .corrupt, loaded.extents.runs, of: id, key: loaded.record.key, origin: loaded.record.origin)
    }

    /// The target of `path` below a mount.
    func mounted(_ origin: String, _ path: String, key: String? = nil) throws(CacheError) -> AssetTarget {
        try mounted(try origins.mounted(origin), path, key: key)
    }

    /// The target of a record, with the origin's current settings.
    func target(of record: AssetRecord) throws(CacheError) -> AssetTarget {
        let origin = record.origin == Origin.absoluteName ? nil : try origins.mounted(record.origin)
        let settings = origin?.settings ?? origins.absolute
        let url = try upstream.parse(url: origin.flatMap { try? moved(record, to: $0) } ?? record.url)
        if record.origin == Origin.absoluteName { try origins.allow(url) }
        return AssetTarget(
            id: record.id, key: record.key, originName: record.origin, settings: settings, url: url.text,
            path: url.path, variant: record.variant)
    }

    /// The URL of an asset with an origin that has another base URL since the last fetch. Nil if the base is unchanged,
    /// or if the key does not contain the path.
    private func moved(_ record: AssetRecord, to origin: Origin) throws(CacheError) -> String? {
        let mount = "/o/\(origin.name)/"
        // The digests of variants and of forwarded fields follow a space.
        let key = String(record.key.prefix { $0 != " " })
        guard !record.isBelow(origin.settings.baseURL), key.hasPrefix(mount), !key.contains("?") else { return nil }
        return try AssetKey.upstreamURL(origin: origin, path: String(key.dropFirst(mount.count)), query: nil)
    }

    /// The target of a record for a caller that fetches nothing; the origin need not be mounted any more.
    func shelved(_ record: AssetRecord) -> AssetTarget {
        let settings = origins[record.origin]?.origin.settings ?? origins.absolute
        return AssetTarget(
            id: record.id, key: record.key, originName: record.origin, settings: settings, url: record.url,
            path: record.url.withoutQuery, variant: record.variant)
    }

    private func absolute(_ text: String, key: String?) throws(CacheError) -> AssetTarget {
        let url = try upstream.parse(url: CMCDParameter.removed(fromTarget: text))
        try origins.allow(url)
        let name = try key.map { (text) throws(CacheError) in try AssetKey.named(text) }
        return target(name ?? AssetKey.absolute(url, digest: Self.digest), settings: origins.absolute, url: url)
    }

    private func mounted(_ origin: Origin, _ pathAndQuery: String, key: String?) throws(CacheError) -> AssetTarget {
        let parts = pathAndQuery.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let query = parts.count > 1 ? parts[1] : nil
        let path = parts[0].hasPrefix("/") ? String(parts[0].dropFirst()) : parts[0]
        let text = try AssetKey.upstreamURL(origin: origin, path: path, query: query)
        let mounted = try AssetKey.mounted(origin: origin, path: path, query: query, digest: Self.digest)
        let named = try key.map { (text) throws(CacheError) in try AssetKey.named(text, originName: origin.name) }
        return target(named ?? mounted, settings: origin.settings, url: try upstream.parse(url: text))
    }

    /// The target of a test of an origin that need not be mounted; without a path: its base URL.
    func tested(_ origin: Origin, _ path: String?) throws(CacheError) -> AssetTarget {
        if let path { return try mounted(origin, path, key: nil) }
        let (key, url) = ("/o/\(origin.name)/", try upstream.parse(url: origin.settings.baseURL))
        return AssetTarget(
            id: AssetID(naming: key), key: key, originName: origin.name, settings: origin.settings, url: url.text,
            path: url.path)
    }

    /// The key of an asset; nil if there is none with this identifier.
    func key(of id: AssetID) async throws(CacheError) -> String? {
        if let record = context.openAssets[id]?.record { return record.key }
        return try await catalog.asset(id)?.record.key
    }

    private func known(_ id: AssetID) async throws(CacheError) -> AssetTarget {
        if let record = context.openAssets[id]?.record { return try target(of: record) }
        guard let stored = try await catalog.asset(id) else {
            throw CacheError(.notFound, "There is no asset \(id).")
        }
        return try target(of: stored.record)
    }

    private func target(_ key: AssetKey, settings: OriginSettings, url: UpstreamURL) -> AssetTarget {
        AssetTarget(
            id: AssetID(naming: key.text), key: key.text, originName: key.originName, settings: settings, url: url.text,
            path: url.path)
    }

    /// The first 64 bits of SHA-256 in hexadecimal: enough to distinguish the queries of one path.
    static func digest(_ text: String) -> String {
        String(AssetID(naming: text).description.prefix(16))
    }
}

extension AssetID {
    /// The ID of the asset with that key: the first 128 bits of its SHA-256.
    package init(naming key: String) {
        let words = HashFunction.sha256.digest(of: key.utf8).withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            )
        }
        self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
    }
}
