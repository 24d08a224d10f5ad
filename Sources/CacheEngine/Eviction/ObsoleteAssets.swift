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

    /// The progress of one call.
    private struct Search {
        /// The uptime when an asset was first found busy.
        var waiting: [AssetID: Duration] = [:]
        /// Assets that failed; the others go on.
        var failures: [AssetID: CacheError] = [:]
        /// Whether any asset was found in this round.
        var hasFound = false
    }

    init(resolver: AssetResolver, evictor: Evictor, clock: any Clock<Duration>) {
        self.resolver = resolver
        self.evictor = evictor
        self.clock = clock
    }

    /// Goes on in rounds until one finds nothing: a read that began before a change can still store an asset, and assets
    /// in use are tried again. Throws the error of an asset after the others are done.
    func renew() async throws(CacheError) {
        try await purgeKeyed()
        var search = Search()
        repeat {
            search.hasFound = false
            for entry in resolver.origins.all { try await renewStored(of: entry.origin.name, &search) }
            if !search.waiting.isEmpty { guard (try? await clock.sleep(for: .seconds(1))) != nil else { return } }
        } while search.hasFound
        if let failure = search.failures.values.first { throw failure }
    }

    /// Purges or converts the assets of an origin that are stored in the other form. Assets that a purge in the background
    /// has selected are left to it.
    private func renewStored(of origin: String, _ search: inout Search) async throws(CacheError) {
        let (catalog, keys) = (resolver.catalog, resolver.context.store.masterKeys)
        var last: AssetID?
        // The setting may change again meanwhile.
        while let isEncrypted = resolver.origins[origin]?.origin.settings.isEncrypted {
            let page = try await catalog.assets(
                of: origin, encrypted: !isEncrypted, after: last, limit: Self.pageSize)
            guard !page.isEmpty else { return }
            last = page.last
            let obsolete = page.filter { !catalog.isPurged($0) && search.failures[$0] == nil }
            guard !obsolete.isEmpty else { continue }
            search.hasFound = true
            guard keys.onChange == .convert else {
                try await evictor.purge(obsolete)
                continue
            }
            for id in obsolete { try await convert(id, &search) }
        }
    }

    /// Converts an asset, or purges it if that is not possible: then the next one has space.
    private func convert(_ id: AssetID, _ search: inout Search) async throws(CacheError) {
        do throws(CacheError) {
            let conversion = AssetConversion(resolver: resolver, evictor: evictor, clock: clock)
            var outcome = try await conversion.convert(id)
            let now = resolver.context.uptime()
            if case .busy = outcome, now - (search.waiting[id] ?? now) >= Self.patience { outcome = .impossible }
            switch outcome {
            case .done: search.waiting[id] = nil
            case .busy: search.waiting[id] = search.waiting[id] ?? now
            case .impossible:
                search.waiting[id] = nil
                try await evictor.purge([id])
            }
        } catch {
            guard error.code != .cancelled, error.code != .shuttingDown else { throw error }
            search.waiting[id] = nil
            search.failures[id] = error
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
