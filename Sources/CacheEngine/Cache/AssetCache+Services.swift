package import CacheCore
import CacheStore
import Logging
import Synchronization

extension AssetCache {
    /// Reads what the catalog keeps of policy and origins; call it once, before anything is served.
    package func prepare() async throws(CacheError) {
        let catalog = context.store.catalog
        if let kept = try await catalog.policy() {
            if kept.value != settings.policy {
                context.logger.notice("the policy set over the API is in force, not the configured one")
            }
            adopt(RevisedPolicy(settings: kept.value, revision: kept.revision))
        }
        if let form = try await catalog.segmentForm() { context.space.begin(as: form) }
        context.space.with { $0.pinned.formUnion(catalog.pinned) }  // before their segments, or they could go
        for kept in try await catalog.origins() {
            origins[kept.value.name] = OriginTable.Entry(origin: kept.value, revision: kept.revision)
        }
        for origin in settings.origins where origins[origin.name]?.origin != origin {
            let revision = try await catalog.saveOrigin(origin)
            origins[origin.name] = OriginTable.Entry(origin: origin, revision: revision)
        }
        adoptQuotas()
        await logged("credentials could not be read", rereadCredentials)
        try evictor.measureDisk()
        enter(.ready)
    }

    /// Everything the cache does beside answering, until it is cancelled; the last thing it does is to commit.
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
                        await self.logged("the eviction policy's state was not kept", self.keeper.keepBeforeEviction)
                        await self.logged("old assets were not removed", self.expireBeforeEviction)
                    }
                    await self.logged("eviction failed", self.evictor.makeRoom)
                }
            }
            group.addTask { await self.keepUp() }
            group.addTask { await self.scrubber.run(clock: self.clock) }
            group.addTask { await self.every(.seconds(1), self.tidy) }
            group.addTask { await self.every(.seconds(2), self.rereadCredentials) }
            group.addTask {
                await self.every(.seconds(15)) { () async throws(CacheError) in
                    try await self.keeper.keep()
                    try await self.context.evictionLog.write()
                }
            }
            group.addTask { await self.every(.seconds(60), self.expire) }
            group.addTask { await self.every(.seconds(60), self.recordMinute) }
        }
        await logged("the last minute's figures were not kept", recordMinute)
        await logged("the eviction policy's state was not kept", keeper.keep)
        await logged("the log of evictions was not kept", context.evictionLog.write)
        await logged("the last commit failed", context.commits.flush)
        context.openAssets.closeAll()
        await context.diskThreads.shutdown()
    }

    /// The service is about to stop: readiness turns false, reads in progress go on.
    package func drain() { enter(.draining) }

    // MARK: Parts

    /// Takes stock, again where that fails: after a second, and then more and more rarely.
    private func takeStockAtLast() async {
        var pause = Duration.seconds(1)
        while true {
            if await logged("reconciliation failed and is tried again", takeStock) { return }
            // Cancelled: what was left undone is done after the next start.
            guard (try? await clock.sleep(for: pause)) != nil else { return }
            pause = min(pause * 2, .seconds(60))
        }
    }

    /// Puts the store in order after a restart, and learns what is on disk and how recently it was read.
    private func takeStock() async throws(CacheError) {
        let before = context.space.with { $0.usedBytes }
        let found = try await context.store.reconcile()
        // What was added to old files during the walk may be counted twice: rather too much than too little.
        context.space.with { $0.usedBytes = found.usedDiskBytes + max(0, $0.usedBytes - before) }
        if let form = try await context.store.catalog.segmentForm() { try await keeper.restore(form) }
        try await countSegments()
        keeper.begin()
        context.space.adopt(policy().settings)
    }

    /// Has the ledger know which bytes of which segments are on disk, asset by asset.
    private func countSegments() async throws(CacheError) {
        try await context.commits.flush()
        let (context, removals) = (context, context.openAssets.removals)
        let changing = Mutex<[AssetID]>([])
        try await context.store.catalog.eachAsset { stored in
            if let open = context.openAssets[stored.asset], open.count(lastUse: stored.lastAccessAt) { return }
            let isCounted = context.space.with { ledger in
                // Whoever opens or removes it from here on tells the ledger after this.
                let isAsStored = context.openAssets.isClosed(stored.asset, since: removals)
                if isAsStored {
                    ledger.count(stored.extents, of: stored.asset, from: stored.owners, lastUse: stored.lastAccessAt)
                }
                return isAsStored
            }
            if !isCounted { changing.withLock { $0.append(stored.asset) } }
        }
        for id in changing.withLock({ $0 }) {
            guard let asset = try await evictor.openKnown(id) else { continue }
            defer { context.openAssets.release(asset) }
            asset.count(lastUse: asset.record?.lastAccessAt ?? context.wallClock.now())
        }
        context.space.ring()
    }

    /// Takes up what has changed in the files of credentials that origins name; what is wrong with one is logged.
    private func rereadCredentials() async throws(CacheError) {
        let files = (origins.all.map(\.origin.settings) + [settings.absolute]).compactMap(\.credentialsFile)
        guard !files.isEmpty else { return }
        try await context.credentials.reread(Set(files))
    }

    /// Ends waits that have become too long, closes assets that nobody has used for long, once all they know is in the
    /// catalog, and looks after free space.
    private func tidy() async throws(CacheError) {
        context.openAssets.releaseDue(at: context.uptime())
        for asset in context.openAssets.detached + context.openAssets.all {
            asset.tick()
            await relieveMemory(of: asset)
        }
        guard try findsStore() else { return }
        try evictor.measureDisk()
        context.space.ringIfAwaited()
        if context.space.excess().bytes > 0 || context.space.with({ !$0.overdrafts.isEmpty }) { context.space.ring() }
        let surplus = context.openAssets.idleSurplus()
        guard !surplus.isEmpty else { return }
        try await context.commits.flush()
        context.openAssets.close(surplus)
    }

    /// What the disk had no room for stays in memory only while somebody is about to send it.
    private func relieveMemory(of asset: OpenAsset) async {
        guard let file = asset.look({ $0.isSpilled ? $0.file : nil }) else { return }
        guard file.name != nil, context.openAssets[asset.id] === asset else { return asset.relieveMemory(of: file) }
        await logged("what found no room on the disk was not given up") { () async throws(CacheError) in
            _ = try await self.evictor.drop(file.spilled.runs, of: asset.id, because: .freeDisk)
        }
    }

    /// A directory that is gone is told once, in place of what fails for it every second.
    private func findsStore() throws(CacheError) -> Bool {
        let isMissing = try !context.store.isInPlace()
        let wasMissing = storeIsMissing.exchange(isMissing, ordering: .relaxed)
        if isMissing, !wasMissing { context.logger.critical("the data directory is gone; start the service again") }
        return !isMissing
    }

    /// Removes assets that were not read, or have been there, for longer than the policy allows.
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

    /// What is too old goes before anything else, looked for every five seconds at most.
    private func expireBeforeEviction() async throws(CacheError) {
        let policy = policyState.withLock { $0.settings }
        guard policy.maxIdle != nil || policy.maxAge != nil,
            expiredAt.withLock({ $0 }).map({ context.uptime() - $0 >= .seconds(5) }) ?? true
        else { return }
        try await expire()
    }

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

    private func expire(
        _ sort: AssetQuery.Sort, before limit: Timestamp, because reason: EvictionReason,
        _ time: (AssetRecord) -> Timestamp
    ) async throws(CacheError) {
        var cursor: String?
        repeat {
            let query = AssetQuery(isPinned: false, sort: sort, isDescending: false, limit: 200, cursor: cursor)
            let page = try await context.store.catalog.assetPage(query)
            let old = page.items.filter { time($0.record) < limit }
            let idle = old.filter { item in !evictor.isInUse(item.record.id) }
            if !idle.isEmpty {
                try await evictor.remove(
                    idle.map(\.record.id), because: reason,
                    telling: CacheError(.assetChanged, "The asset was too old to be kept."))
                context.counters.evicted(segments: idle.count, bytes: idle.reduce(0) { $0 + $1.cachedBytes })
            }
            cursor = old.count == page.items.count ? page.nextCursor : nil
        } while cursor != nil
    }

    private func every(_ interval: Duration, _ body: () async throws(CacheError) -> Void) async {
        // The sleep ends early only by cancellation, which ends the loop.
        while (try? await clock.sleep(for: interval)) != nil {
            await logged("a periodic task failed", body)
        }
    }

    /// Answers whether it succeeded.
    @discardableResult
    func logged(_ message: Logger.Message, _ body: () async throws(CacheError) -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch  where error.code == .cancelled {
            // The service ends: what was left undone is done after the next start.
        } catch {
            context.logger.error(message, metadata: ["error": "\(error)"])
        }
        return false
    }
}
