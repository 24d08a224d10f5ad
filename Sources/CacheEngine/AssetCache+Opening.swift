import CacheCore
import CacheStore
import Synchronization

extension AssetCache {
    /// The target of a reference; an asset that is open is found without the catalog.
    func resolve(_ reference: AssetReference) async throws(CacheError) -> AssetTarget {
        if case .known(let id) = reference, let record = context.openAssets[id]?.record {
            return try resolver.target(of: record)
        }
        return try await resolver.resolve(reference)
    }

    /// The asset the target names, held until it is released: from the table, or the catalog, or new.
    func open(_ target: AssetTarget) async throws(CacheError) -> OpenAsset {
        while true {
            if let asset = context.openAssets.acquire(target.id) {
                asset.retarget(target)
                return asset
            }
            let moment = context.openAssets.moment(for: target.id)
            let loaded = moment.isRemoving ? nil : try await context.store.load(target.id)
            let asset =
                loaded.map { OpenAsset(target: target, loaded: $0, context: context) }
                ?? OpenAsset(target: target, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }

    /// Counts the read as a use where the policy keeps only what is used more often, and nothing is kept of the asset yet.
    func isTooRare(_ target: AssetTarget, at now: Timestamp) async throws(CacheError) -> Bool {
        let minUses = policy().settings.minUses
        guard minUses > 1, !target.keepsNothing, context.openAssets[target.id]?.record == nil,
            try await context.store.catalog.asset(target.id) == nil
        else { return false }
        return admission.withLock { $0.use(target.id, at: now) } < minUses
    }
}
