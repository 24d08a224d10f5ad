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
            let moment = context.openAssets.moment(for: target.id, context.commits)
            let loaded = moment.isRemoving ? nil : try await context.store.load(target.id)
            let asset =
                loaded.map { OpenAsset(target: target, loaded: $0, context: context) }
                ?? OpenAsset(target: target, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }

    /// The asset, held; one that leaves no trace where it is not kept yet or not any more, the reader forbids to keep what must
    /// be fetched for it, or the disk cannot tell what is known of it.
    func openToServe(_ target: AssetTarget, _ attempt: ReadAttempt) async throws(CacheError) -> OpenAsset {
        let asset: OpenAsset
        do {
            asset = try await open(target)
        } catch  where error.code == .storageCorrupt {
            return try unkept(target, attempt)
        }
        if context.upstream.queuedForReaders >= settings.maxQueuedFills, !isServedUnasked(asset, attempt) {
            context.openAssets.release(asset)
            throw CacheError(.overloaded, "Too much queues for upstreams already.")
        }
        let leavesNoTrace = attempt.directives.noStore || attempt.isPassing || !context.store.canKeep
        guard leavesNoTrace || attempt.directives.onlyIfCached, !isServedUnasked(asset, attempt) else {
            return asset
        }
        context.openAssets.release(asset)
        return try unkept(target, attempt)
    }

    /// One of the asset's own for a read that leaves no trace.
    private func unkept(_ target: AssetTarget, _ attempt: ReadAttempt) throws(CacheError) -> OpenAsset {
        guard !attempt.directives.onlyIfCached else {
            throw CacheError(
                .notCached, "Not all of it is here and fresh, and the request forbids to ask the upstream.")
        }
        let unkept = OpenAsset(target: target.unkept, context: context)
        context.openAssets.retain(unkept)
        return unkept
    }

    /// Counts the read as a use where the policy keeps only what is used more often, and nothing is kept of the asset yet.
    func isTooRare(_ target: AssetTarget, at now: Timestamp) async -> Bool {
        let minUses = policy().settings.minUses
        guard minUses > 1, !target.keepsNothing, context.openAssets[target.id]?.record == nil,
            await !isKept(target.id)
        else { return false }
        return admission.withLock { $0.use(target.id, at: now) } < minUses
    }

    /// Where the catalog cannot tell, opening the asset tells why.
    private func isKept(_ id: AssetID) async -> Bool {
        do { return try await context.store.catalog.asset(id) != nil } catch { return true }
    }
}
