package import CacheCore
import CacheStore
import Logging
import Synchronization

extension AssetCache {
    /// Loads the policy and the origins from the catalog; call it once, before the first request is served.
    package func prepare() async throws(CacheError) {
        let catalog = context.store.catalog
        if let kept = try await catalog.policy() {
            if kept.value != settings.policy {
                context.logger.notice("the policy set over the API is in force, not the configured one")
            }
            adopt(RevisedPolicy(settings: kept.value, revision: kept.revision))
        }
        if let form = try await catalog.segmentForm() { context.space.begin(as: form) }
        context.space.with { $0.pinned.formUnion(catalog.pinned) }  // first, or their segments could be evicted
        for kept in try await catalog.origins() {
            origins[kept.value.name] = OriginTable.Entry(origin: kept.value, revision: kept.revision)
        }
        // Configured origins replace stored ones of the same name.
        for origin in settings.origins where origins[origin.name]?.origin != origin {
            let revision = try await catalog.saveOrigin(origin)
            origins[origin.name] = OriginTable.Entry(origin: origin, revision: revision)
        }
        adoptQuotas()
        await logged("credentials could not be read", rereadCredentials)
        try evictor.measureDisk()
        enter(.ready)
    }

    /// Runs the background tasks of the cache until cancellation, then makes a last commit.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.context.commits.run(clock: self.clock) }
            group.addTask {
                await self.takeStockAtLast()
                for await _ in self.context.space.recounts {
                    await self.logged("segments could not be counted", self.countSegments)
                }
            }
            group.addTask { await self.prefetch.run(in: self) }
            group.addTask {
                for await _ in self.context.space.shortage {
                    if self.context.space.excess().bytes > 0 {
                        await self.logged("the eviction state could not be stored", self.stateWriter.keepBeforeEviction)
                        await self.logged("expired assets could not be removed", self.expireBeforeEviction)
                    }
                    await self.logged("eviction failed", self.evictor.makeRoom)
                }
            }
            group.addTask { await self.runMaintenance() }
            group.addTask { await self.scrubber.run(clock: self.clock) }
            group.addTask { await self.every(.seconds(1), self.tidy) }
            group.addTask { await self.every(.seconds(2), self.rereadCredentials) }
            group.addTask {
                await self.every(.seconds(15)) { () async throws(CacheError) in
                    try await self.stateWriter.keep()
                    try await self.context.evictionLog.write()
                }
            }
            group.addTask { await self.every(.seconds(60), self.expire) }
            group.addTask { await self.every(.seconds(60), self.recordMinute) }
        }
        // Shutdown: the state in memory is stored, then committed.
        await logged("the statistics of the last minute could not be stored", recordMinute)
        await logged("the eviction state could not be stored", stateWriter.keep)
        await logged("the eviction log could not be stored", context.evictionLog.write)
        await logged("the last commit failed", context.commits.flush)
        context.openAssets.closeAll()
        await context.diskThreads.shutdown()
    }

    /// Starts the shutdown: readiness turns false, and reads in progress continue.
    package func drain() { enter(.draining) }

    // MARK: Parts

    /// Reconciles the store, and retries after a failure with a delay that doubles from 1 s to 60 s.
    private func takeStockAtLast() async {
        var pause = Duration.seconds(1)
        while true {
            if await logged("the reconciliation of files and catalog failed and will be retried", takeStock) { return }
            // Cancelled: the next start completes the work.
            guard (try? await clock.sleep(for: pause)) != nil else { return }
            pause = min(pause * 2, .seconds(60))
        }
    }

    /// Reconciles files and catalog after a restart, and restores the usage and the eviction state of the segments.
    private func takeStock() async throws(CacheError) {
        let before = context.space.with { $0.usedBytes }
        let found = try await context.store.reconcile()
        // Growth of old files during the scan may be counted twice: an overestimate is safe.
        context.space.with { $0.usedBytes = found.usedDiskBytes + max(0, $0.usedBytes - before) }
        if let form = try await context.store.catalog.segmentForm() { try await stateWriter.restore(form) }
        try await countSegments()
        stateWriter.begin()
        context.space.adopt(policy().settings)
    }

    /// Tells the space ledger which bytes of each segment are on disk, asset by asset.
    private func countSegments() async throws(CacheError) {
        try await context.commits.flush()
        let (context, removals) = (context, context.openAssets.removals)
        let changing = Mutex<[AssetID]>([])
        try await context.store.catalog.eachAsset { stored in
            if let open = context.openAssets[stored.asset], open.count(lastUse: stored.lastAccessAt) { return }
            let isCounted = context.space.with { ledger in
                // A thread that opens or removes the asset after this check updates the ledger later.
                let isAsStored = context.openAssets.isClosed(stored.asset, since: removals)
                if isAsStored {
                    ledger.count(stored.extents, of: stored.asset, from: stored.owners, lastUse: stored.lastAccessAt)
                }
                return isAsStored
            }
            if !isCounted { changing.withLock { $0.append(stored.asset) } }
        }
        // Assets that were opened or removed during the scan are counted from their open state.
        for id in changing.withLock({ $0 }) {
            guard let asset = try await evictor.openKnown(id) else { continue }
            defer { context.openAssets.release(asset) }
            asset.count(lastUse: asset.record?.lastAccessAt ?? context.wallClock.now())
        }
        context.space.notify()
    }

    /// Reads changed credentials files of the origins; an error in one of them is logged.
    private func rereadCredentials() async throws(CacheError) {
        let files = (origins.all.map(\.origin.settings) + [settings.absolute]).compactMap(\.credentialsFile)
        guard !files.isEmpty else { return }
        try await context.credentials.reread(Set(files))
    }

    /// Applies time limits of readers, closes assets that have been idle for long once their state is in the catalog,
    /// and checks the free space.
    private func tidy() async throws(CacheError) {
        context.openAssets.releaseDue(at: context.uptime())
        for asset in context.openAssets.detached + context.openAssets.all {
            asset.tick()
            await relieveMemory(of: asset)
        }
        guard try findsStore() else { return }
        try evictor.measureDisk()
        context.space.notifyIfAwaited()
        if context.space.excess().bytes > 0 || context.space.with({ !$0.overdrafts.isEmpty }) { context.space.notify() }
        // The commit comes before the removal: an asset that is opened again is loaded from the catalog.
        let surplus = context.openAssets.idleSurplus()
        guard !surplus.isEmpty else { return }
        try await context.commits.flush()
        context.openAssets.close(surplus)
    }

    /// Releases spilled bytes that no reader is about to send.
    private func relieveMemory(of asset: OpenAsset) async {
        guard let file = asset.look({ $0.isSpilled ? $0.file : nil }) else { return }
        guard file.name != nil, context.openAssets[asset.id] === asset else { return asset.relieveMemory(of: file) }
        await logged("spilled bytes could not be released") { () async throws(CacheError) in
            _ = try await self.evictor.drop(file.spilled.runs, of: asset.id, because: .freeDisk)
        }
    }

    /// Whether the data directory exists. Its disappearance is logged once, instead of an error every second.
    private func findsStore() throws(CacheError) -> Bool {
        let isMissing = try !context.store.isInPlace()
        let wasMissing = storeIsMissing.exchange(isMissing, ordering: .relaxed)
        if isMissing, !wasMissing { context.logger.critical("the data directory is gone; start the service again") }
        return !isMissing
    }

    /// Removes assets that exceed `maxIdle` or `maxAge` of the policy.
    func expire() async throws(CacheError) {
        let policy = policyState.withLock { $0.settings }
        let now = context.wallClock.now()
        let uptime = context.uptime()
        expiredAt.withLock { $0 = uptime }
        try await endPins(at: now)
        if let maxIdle = policy.maxIdle {
            try await expire(.lastAccess, before: now - maxIdle, because: .idle) { $0.lastAccessAt }
        }
        if let maxAge = policy.maxAge {
            try await expire(.createdAt, before: now - maxAge, because: .age) { $0.createdAt }
        }
    }

    /// Removes expired assets before the policy selects victims; searches every five seconds at most.
    private func expireBeforeEviction() async throws(CacheError) {
        let policy = policyState.withLock { $0.settings }
        guard policy.maxIdle != nil || policy.maxAge != nil,
            expiredAt.withLock({ $0 }).map({ context.uptime() - $0 >= .seconds(5) }) ?? true
        else { return }
        try await expire()
    }

    /// Unpins assets with a pin that has ended.
    private func endPins(at now: Timestamp) async throws(CacheError) {
        for id in try await context.store.catalog.endPins(at: now) {
            context.space.with { _ = $0.pinned.remove(id) }
            context.openAssets[id]?.change { state in
                state.record?.isPinned = false
                state.record?.pinnedUntil = nil
                return ((), [])
            }
        }
    }

    /// Removes the unpinned assets with a `time` before `limit` that are not in use.
    private func expire(
        _ sort: AssetQuery.Sort, before limit: Timestamp, because reason: EvictionReason,
        _ time: (AssetRecord) -> Timestamp
    ) async throws(CacheError) {
        var cursor: String?
        repeat {
            let query = AssetQuery(isPinned: false, sort: sort, isDescending: false, limit: 200, cursor: cursor)
            let page = try await context.store.catalog.assetPage(query)
            let old = page.items.filter { time($0.record) < limit }
            // An asset in use is checked again in the next round.
            let idle = old.filter { item in !evictor.isInUse(item.record.id) }
            if !idle.isEmpty {
                try await evictor.remove(
                    idle.map(\.record.id), because: reason,
                    telling: CacheError(.assetChanged, "The asset exceeded the maxIdle or maxAge of the policy."))
                context.counters.evicted(segments: idle.count, bytes: idle.reduce(0) { $0 + $1.cachedBytes })
            }
            cursor = old.count == page.items.count ? page.nextCursor : nil
        } while cursor != nil
    }

    /// Runs a task periodically until cancellation.
    private func every(_ interval: Duration, _ body: () async throws(CacheError) -> Void) async {
        // Only cancellation interrupts the sleep; it ends the loop.
        while (try? await clock.sleep(for: interval)) != nil {
            await logged("a periodic task failed", body)
        }
    }

    /// Runs a task and logs its failure, except a cancellation. Returns whether it succeeded.
    @discardableResult
    func logged(_ message: Logger.Message, _ body: () async throws(CacheError) -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch  where error.code == .cancelled {
            // Shutdown: the next start completes the work.
        } catch {
            context.logger.error(message, metadata: ["error": "\(error)"])
        }
        return false
    }
}
