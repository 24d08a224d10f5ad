import CacheCore
import CacheStore

/// Purges that take effect at once and delete their assets in the background.
///
/// 1. A transaction marks the selected assets in the catalog: a restart finds the marks before its first response.
/// 2. Rows that were read before the marks are read again, and selected assets that are open are ended. From then on
///    each reader finds an empty asset.
/// 3. `removeSelected` deletes rows and files in batches.
final class BackgroundPurges: Sendable {
    /// The number of selected assets from which a purge runs in the background.
    static let least = 1000
    /// The number of assets in one transaction of `removeSelected`, and between two releases of a lock.
    private static let batch = 512

    private let context: EngineContext
    private let evictor: Evictor
    /// Yields when assets are selected, and at the start if an earlier run has left some.
    let work: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init(context: EngineContext, evictor: Evictor) {
        self.context = context
        self.evictor = evictor
        (work, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        if context.store.catalog.hasPurged { signal.yield() }
    }

    /// Selects the assets of the plan, except those that have changed since. On return no reader gets their bytes from
    /// the cache.
    func begin(_ plan: PurgePlan) async throws(CacheError) -> PurgeRecord {
        let (progress, now) = (plan.progress, context.wallClock.now())
        let purge = PurgeRecord(
            id: plan.id, owner: plan.owner, assets: progress.assets, pinnedAssets: progress.pinnedAssets,
            bytes: progress.bytes, expiresAt: progress.expiresAt)
        let marked = try await context.store.mark(purge, plan.assets, at: now)
        defer { signal.yield() }
        context.openAssets.outdateRows()
        endOpen(Set(plan.assets))
        var rest = plan.assets[...]
        while !rest.isEmpty {
            await forgetSegments(of: rest.prefix(Self.batch).map(\.id), at: now)
            rest = rest.dropFirst(Self.batch)
        }
        return marked
    }

    /// Ends the selected assets that are open. A commit deletes their rows.
    private func endOpen(_ selected: Set<AssetVersion>) {
        let catalog = context.store.catalog
        for id in context.openAssets.all.map(\.id) where catalog.isPurged(id) {
            guard let asset = context.openAssets.acquire(id) else { continue }
            defer { context.openAssets.release(asset) }
            // An asset that was opened after the selection is a new one.
            guard let record = asset.record, selected.contains(AssetVersion(record)) else { continue }
            // A commit in between must not take the file for one that is already removed.
            catalog.forgetPurged(id)
            evictor.purge(asset)
        }
    }

    /// Removes the segments of closed assets from the space ledger, and counts those of assets that were opened since
    /// the selection.
    private func forgetSegments(of ids: [AssetID], at now: Timestamp) async {
        // After an error the segments stay until the policy chooses them.
        let extents = (try? await context.store.catalog.purgedExtents(of: ids)) ?? [:]
        let (context, removals) = (context, context.openAssets.removals)
        let open = context.space.with { ledger in
            ids.filter { id in
                guard context.store.catalog.isPurged(id) else { return false }
                ledger.pinned.remove(id)
                guard context.openAssets.isClosed(id, since: removals) else { return true }
                for run in extents[id] ?? [] { ledger.gone(run, of: id) }
                return false
            }
        }
        for asset in open.compactMap(context.openAssets.acquire) {
            asset.count(lastUse: now)
            context.openAssets.release(asset)
        }
    }

    /// Deletes all selected assets. After a cancellation the next start goes on.
    func removeSelected() async throws(CacheError) {
        while !Task.isCancelled {
            // The rows of the assets that were open: their space is released with their last reader.
            try await context.commits.flush()
            let (assets, diskBytes) = try await context.store.removePurged(limit: Self.batch)
            guard !assets.isEmpty else { return }
            context.space.used(changedBy: -diskBytes)
            for asset in assets {
                context.evictionLog.note(
                    .purge, asset.extents, of: asset.id, key: asset.key, origin: asset.origin)
            }
        }
    }
}
