import CacheCore
import CacheStore

extension AssetCache {
    /// The target of a reference; an asset that is open is found without the catalog.
    func resolve(_ reference: AssetReference) async throws(CacheError) -> AssetTarget {
        if case .known(let id) = reference, let asset = context.openAssets.acquire(id) {
            defer { context.openAssets.release(asset) }
            if let record = asset.record { return try resolver.target(of: record) }
        }
        return try await resolver.resolve(reference)
    }

    /// The asset the target names, held until it is released: from the table, or the catalog, or new.
    func open(_ target: AssetTarget) async throws(CacheError) -> OpenAsset {
        if let asset = context.openAssets.acquire(target.id) {
            asset.retarget(target)
            return asset
        }
        let loaded = try await context.store.load(target.id)
        let opened = loaded.map { loaded in
            OpenAsset(
                target: target, record: loaded.record, extents: loaded.extents, file: loaded.file, context: context)
        }
        return context.openAssets.acquire(orInsert: opened ?? OpenAsset(target: target, context: context))
    }
}
