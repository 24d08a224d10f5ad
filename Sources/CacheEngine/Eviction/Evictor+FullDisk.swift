import CacheCore
import Logging

extension Evictor {
    /// Removes the unused assets of a batch completely. On a full disk the catalog cannot record which bytes are
    /// evicted, but files can be deleted before their rows. Returns the removed entries; throws `failure` if all
    /// assets are in use.
    func dropWhole(
        _ plan: [EvictionReport.Entry], because reason: EvictionReason, after failure: CacheError
    ) async throws(CacheError) -> [EvictionReport.Entry] {
        let unused = plan.filter { !isInUse($0.assetID) }
        guard !unused.isEmpty else { throw failure }
        context.logger.error(
            "no space is left to commit evictions: whole assets are removed",
            metadata: ["assets": "\(Set(unused.map(\.assetID)).count)"])
        try await remove(
            Array(Set(unused.map(\.assetID))), because: reason,
            telling: CacheError(.assetChanged, "The asset was evicted from a full disk."))
        return unused
    }

    /// Whether the asset has readers or fills in flight.
    func isInUse(_ id: AssetID) -> Bool {
        guard let asset = context.openAssets.acquire(id) else { return false }
        defer { context.openAssets.release(asset) }
        return asset.look { $0.ledger.readerCount > 0 || $0.ledger.fillCount > 0 }
    }
}
