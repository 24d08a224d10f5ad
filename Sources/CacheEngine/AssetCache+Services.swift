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
        for kept in try await catalog.origins() {
            origins[kept.value.name] = OriginTable.Entry(origin: kept.value, revision: kept.revision)
        }
        for origin in settings.origins where origins[origin.name]?.origin != origin {
            let revision = try await catalog.saveOrigin(origin)
            origins[origin.name] = OriginTable.Entry(origin: origin, revision: revision)
        }
        await logged("credentials could not be read", rereadCredentials)
        try evictor.measureDisk()
        enter(.ready)
    }

    /// Everything the cache does beside answering, until it is cancelled; the last thing it does is to commit.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.context.commits.run(clock: self.clock) }
            group.addTask { await self.logged("reconciliation failed", self.takeStock) }
            group.addTask { await self.prefetch.run(in: self) }
            group.addTask {
                for await _ in self.context.space.shortage {
                    await self.logged("eviction failed", self.evictor.makeRoom)
                }
            }
            group.addTask { await self.every(.seconds(1), self.tidy) }
            group.addTask { await self.every(.seconds(2), self.rereadCredentials) }
            group.addTask { await self.every(.seconds(60), self.expire) }
            group.addTask { await self.every(.seconds(60), self.recordMinute) }
        }
        await logged("the last minute's figures were not kept", recordMinute)
        await logged("the last commit failed", context.commits.flush)
        context.openAssets.closeAll()
        await context.diskThreads.shutdown()
    }

    /// The service is about to stop: readiness turns false, reads in progress go on.
    package func drain() { enter(.draining) }

    // MARK: Parts

    /// Puts the store in order after a restart, and learns what is on disk and how recently it was read.
    private func takeStock() async throws(CacheError) {
        let before = context.space.with { $0.usedBytes }
        let found = try await context.store.reconcile()
        // What was added to old files during the walk may be counted twice: rather too much than too little.
        context.space.with { $0.usedBytes = found.usedDiskBytes + max(0, $0.usedBytes - before) }
        var entries: [EvictionEntry] = []
        var last: AssetID?
        while true {
            let batch = try await context.store.catalog.evictionBatch(after: last, limit: 1000)
            guard !batch.isEmpty else { break }
            last = batch.last?.id
            entries += batch
        }
        entries.sort { $0.lastAccessAt < $1.lastAccessAt }
        for entry in entries {
            context.space.with { ledger in
                if entry.isPinned { ledger.pinned.insert(entry.id) }
                for run in entry.extents.runs { ledger.arrived(run, of: entry.id, at: entry.lastAccessAt) }
            }
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
        for asset in context.openAssets.all { asset.tick() }
        try evictor.measureDisk()
        if context.space.excess().bytes > 0 { context.space.ring() }
        let surplus = context.openAssets.idleSurplus()
        guard !surplus.isEmpty else { return }
        try await context.commits.flush()
        context.openAssets.close(surplus)
    }

    /// Removes assets that were not read, or have been there, for longer than the policy allows.
    private func expire() async throws(CacheError) {
        let policy = policyState.withLock { $0.settings }
        let now = context.wallClock.now()
        if let maxIdle = policy.maxIdle { try await expire(.lastAccess, before: now - maxIdle) { $0.lastAccessAt } }
        if let maxAge = policy.maxAge { try await expire(.createdAt, before: now - maxAge) { $0.createdAt } }
    }

    private func expire(
        _ sort: AssetQuery.Sort, before limit: Timestamp, _ time: (AssetRecord) -> Timestamp
    ) async throws(CacheError) {
        var cursor: String?
        repeat {
            let query = AssetQuery(isPinned: false, sort: sort, isDescending: false, limit: 200, cursor: cursor)
            let page = try await context.store.catalog.assetPage(query)
            let old = page.items.filter { time($0.record) < limit }
            let idle = old.filter { item in !isInUse(item.record.id) }
            if !idle.isEmpty {
                try await evictor.remove(
                    idle.map(\.record.id), because: CacheError(.assetChanged, "The asset was too old to be kept."))
                context.counters.evicted(segments: idle.count, bytes: idle.reduce(0) { $0 + $1.cachedBytes })
            }
            cursor = old.count == page.items.count ? page.nextCursor : nil
        } while cursor != nil
    }

    private func isInUse(_ id: AssetID) -> Bool {
        guard let asset = context.openAssets.acquire(id) else { return false }
        defer { context.openAssets.release(asset) }
        return asset.look { $0.ledger.readerCount > 0 || $0.ledger.fillCount > 0 }
    }

    private func every(_ interval: Duration, _ body: () async throws(CacheError) -> Void) async {
        // The sleep ends early only by cancellation, which ends the loop.
        while (try? await clock.sleep(for: interval)) != nil {
            await logged("a periodic task failed", body)
        }
    }

    private func logged(_ message: Logger.Message, _ body: () async throws(CacheError) -> Void) async {
        do {
            try await body()
        } catch  where error.code == .cancelled {
            // The service ends: what was left undone is done after the next start.
        } catch {
            context.logger.error(message, metadata: ["error": "\(error)"])
        }
    }
}
