import CacheCore
import CacheStore
import Synchronization

extension AssetCache {
    /// The target of a reference. The catalog is not read for an asset that is open. Throws `.notFound`, or the error
    /// of a malformed reference.
    func resolve(_ reference: AssetReference) async throws(CacheError) -> AssetTarget {
        if case .known(let id) = reference, let record = context.openAssets[id]?.record {
            return try resolver.target(of: record)
        }
        return try await resolver.resolve(reference)
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
            let asset =
                loaded.map { OpenAsset(target: target, loaded: $0, context: context) }
                ?? OpenAsset(target: target, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }

    /// Acquires the asset for a read. Returns a private, uncached instance if the asset is below the admission
    /// threshold, the store cannot keep it, the request says `no-store`, or the catalog row cannot be read. A readable
    /// asset is preferred if the response can be served from disk alone.
    ///
    /// Throws `.overloaded` if too many fills for readers are queued, and `.notCached` if the request says
    /// `only-if-cached` and an upstream request would be needed.
    func openToServe(_ target: AssetTarget, _ attempt: ReadAttempt) async throws(CacheError) -> OpenAsset {
        let asset: OpenAsset
        do {
            asset = try await open(target)
        } catch  where error.code == .storageCorrupt {
            return try unkept(target, attempt)
        }
        if context.upstream.queuedForReaders >= settings.maxQueuedFills, !isServedUnasked(asset, attempt) {
            context.openAssets.release(asset)
            throw CacheError(.overloaded, "Too many fills are queued: retry later, or raise limits.maxQueuedFills.")
        }
        let leavesNoTrace = attempt.directives.noStore || attempt.isPassing || !context.store.canKeep
        guard leavesNoTrace || attempt.directives.onlyIfCached, !isServedUnasked(asset, attempt) else {
            return asset
        }
        context.openAssets.release(asset)
        return try unkept(target, attempt)
    }

    /// A private, empty instance of the asset that leaves no trace in the store. Throws `.notCached` for
    /// `only-if-cached`.
    private func unkept(_ target: AssetTarget, _ attempt: ReadAttempt) throws(CacheError) -> OpenAsset {
        guard !attempt.directives.onlyIfCached else {
            throw CacheError(
                .notCached, "The content is not completely cached and fresh, and the request says only-if-cached.")
        }
        let unkept = OpenAsset(target: target.unkept, context: context)
        context.openAssets.retain(unkept)
        return unkept
    }

    /// Admission control: counts the read, and returns whether the asset has had fewer than the policy's `minUses`
    /// reads. False if the asset is in the store already, or is never kept.
    func isTooRare(_ target: AssetTarget, at now: Timestamp) async -> Bool {
        let minUses = policy().settings.minUses
        guard minUses > 1, !target.keepsNothing, context.openAssets[target.id]?.record == nil,
            await !isKept(target.id)
        else { return false }
        return admission.withLock { $0.use(target.id, at: now) } < minUses
    }

    /// Whether the catalog has the asset. True on a catalog error, because opening the asset then reports that error.
    private func isKept(_ id: AssetID) async -> Bool {
        do { return try await context.store.catalog.asset(id) != nil } catch { return true }
    }
}
