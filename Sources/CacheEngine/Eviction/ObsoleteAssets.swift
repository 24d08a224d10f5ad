import CacheCore
import CacheStore

/// Removes or converts assets that another setting of their origin stored:
///
/// - Assets with a CMCD parameter in their key, which earlier versions or another setting of `cmcd` stored. No request
///   names them any more: they are purged.
/// - Assets that are stored in plain text although their origin is encrypted, and the other way round. They are purged
///   and fetched again, or converted (`encryption.onChange`). Assets that cannot be converted are purged.
struct ObsoleteAssets: Sendable {
    let resolver: AssetResolver
    let evictor: Evictor
    let clock: any Clock<Duration>
    private static let pageSize = 256
    /// The time that an asset in use waits for its conversion.
    private static let patience = Duration.seconds(600)

    init(resolver: AssetResolver, evictor: Evictor, clock: any Clock<Duration>) {
        self.resolver = resolver
        self.evictor = evictor
        self.clock = clock
    }

    func renew() async throws(CacheError) {
        try await purgeKeyed()
        for entry in resolver.origins.all { try await renewStored(of: entry.origin.name) }
    }

    /// Purges or converts the assets of an origin that are stored in the other form, until a search finds none: a read
    /// that began before the change can still store one. Assets that a purge in the background has selected are left to
    /// it.
    private func renewStored(of origin: String) async throws(CacheError) {
        let (catalog, end) = (resolver.catalog, resolver.context.uptime() + Self.patience)
        var (last, isClean): (AssetID?, Bool) = (nil, true)
        // The setting may change again meanwhile.
        while let isEncrypted = resolver.origins[origin]?.origin.settings.isEncrypted {
            let page = try await catalog.assets(
                of: origin, encrypted: !isEncrypted, after: last, limit: Self.pageSize)
            if page.isEmpty, isClean { return }
            let obsolete = page.filter { !catalog.isPurged($0) }
            let converts = resolver.context.store.masterKeys.onChange == .convert
            let waits = resolver.context.uptime() < end
            let purged = converts ? try await convert(obsolete, mayWait: waits) : obsolete
            if !purged.isEmpty { try await evictor.purge(purged) }
            if page.isEmpty, converts {
                // Assets in use are tried again.
                guard (try? await clock.sleep(for: .seconds(1))) != nil else { return }
            }
            (last, isClean) = page.isEmpty ? (nil, true) : (page.last, isClean && obsolete.isEmpty)
        }
    }

    /// Converts assets. Returns those that must be purged instead.
    private func convert(_ ids: [AssetID], mayWait: Bool) async throws(CacheError) -> [AssetID] {
        let conversion = AssetConversion(resolver: resolver, evictor: evictor)
        var rest: [AssetID] = []
        for id in ids {
            switch try await conversion.convert(id) {
            case .done: break
            case .inUse: if !mayWait { rest.append(id) }
            case .impossible: rest.append(id)
            }
        }
        return rest
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
