import CacheCore
import CacheStore

/// Purges assets that another setting of their origin stored:
///
/// - Assets with a CMCD parameter in their key, which earlier versions or another setting of `cmcd` stored. No request
///   names them any more.
/// - Assets that are stored in plain text although their origin is encrypted, and the other way round. They are fetched
///   again.
struct ObsoleteAssets: Sendable {
    let resolver: AssetResolver
    let evictor: Evictor
    private static let pageSize = 256

    init(resolver: AssetResolver, evictor: Evictor) {
        self.resolver = resolver
        self.evictor = evictor
    }

    func purge() async throws(CacheError) {
        try await purgeKeyed()
        for entry in resolver.origins.all { try await purgeStored(of: entry.origin) }
    }

    /// Purges the assets of an origin that are stored in the other form, until a search finds none: a read that began
    /// before the change can still store one. Assets that a purge in the background has selected are left to it.
    private func purgeStored(of origin: Origin) async throws(CacheError) {
        let catalog = resolver.catalog
        var (last, isClean): (AssetID?, Bool) = (nil, true)
        while true {
            let page = try await catalog.assets(
                of: origin.name, encrypted: !origin.settings.isEncrypted, after: last, limit: Self.pageSize)
            if page.isEmpty, isClean { return }
            let obsolete = page.filter { !catalog.isPurged($0) }
            if !obsolete.isEmpty { try await evictor.purge(obsolete) }
            (last, isClean) = page.isEmpty ? (nil, true) : (page.last, isClean && obsolete.isEmpty)
        }
    }

    private func purgeKeyed() async throws(CacheError) {
        var last: AssetID?
        while true {
            let page = try await resolver.catalog.assetsWithQuery(after: last, limit: Self.pageSize)
            let obsolete = page.filter(isObsolete)
            if !obsolete.isEmpty { try await evictor.purge(obsolete.map(\.id)) }
            guard page.count == Self.pageSize else { return }
            last = page.last?.id
        }
    }

    /// Whether the digest in the key is that of a query with CMCD, although the origin's keys are without it.
    private func isObsolete(_ asset: KeyedURL) -> Bool {
        let isAbsolute = asset.origin == Origin.absoluteName
        let settings = isAbsolute ? resolver.origins.absolute : resolver.origins[asset.origin]?.origin.settings
        guard let settings, settings.cmcd != .key,
            let query = try? resolver.upstream.parse(url: asset.url).query, CMCDParameter.isPresent(in: query)
        else { return false }
        // The marks of variants and of forwarded fields follow a space.
        let digest = asset.key.prefix { $0 != " " }.split(separator: "?").last.map(String.init)
        let significant = settings.keyQuery.significant(query)
        return significant != settings.significant(query) && significant.map(AssetResolver.digest) == digest
    }
}
