import CacheCore
import Logging

extension Evictor {
    /// Takes the assets of a batch away whole that nobody uses: no room is left to write down which of their bytes go, but
    /// their files can go before their rows. Answers what went; throws `failure` where they are all in use.
    func dropWhole(
        _ plan: [EvictionReport.Entry], because reason: EvictionReason, after failure: CacheError
    ) async throws(CacheError) -> [EvictionReport.Entry] {
        let unused = plan.filter { !isInUse($0.assetID) }
        guard !unused.isEmpty else { throw failure }
        context.logger.error(
            "no room is left to commit evictions: whole assets go",
            metadata: ["assets": "\(Set(unused.map(\.assetID)).count)"])
        try await remove(
            Array(Set(unused.map(\.assetID))), because: reason,
            telling: CacheError(.assetChanged, "The asset was evicted from a full disk."))
        return unused
    }

    /// Whether somebody reads the asset, or fetches it.
    func isInUse(_ id: AssetID) -> Bool {
        guard let asset = context.openAssets.acquire(id) else { return false }
        defer { context.openAssets.release(asset) }
        return asset.look { $0.ledger.readerCount > 0 || $0.ledger.fillCount > 0 }
    }
}
