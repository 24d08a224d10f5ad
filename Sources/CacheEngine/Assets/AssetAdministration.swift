package import CacheCore
import CacheStore

/// Lists, changes and removes single assets for the management API.
package struct AssetAdministration: Sendable {
    let context: EngineContext
    let resolver: AssetResolver
    let evictor: Evictor
    let configuration: CacheConfiguration
    let prefetch: PrefetchQueue
    let clock: any Clock<Duration>
    /// The longest wait of a list for the commit of the latest changes while jobs are unfinished.
    let listWait: Duration

    /// Returns a page of assets. It includes all changes reported before the call; while jobs are unfinished, only those
    /// that are committed within `listWait`. Throws `.invalidField("cursor")` for a malformed cursor.
    package func page(
        _ query: AssetQuery
    ) async throws(CacheError) -> (items: [AssetSummary], nextCursor: String?) {
        try await settle()
        let page = try await context.store.catalog.assetPage(resolved(query))
        return (page.items.map { summary(of: $0.record, cachedBytes: $0.cachedBytes) }, page.nextCursor)
    }

    /// Waits for the commit of the changes before the call; while jobs are unfinished, at most `listWait`.
    private func settle() async throws(CacheError) {
        if prefetch.isBusy {
            try await context.commits.flush(within: listWait, clock: clock)
        } else {
            try await context.commits.flush()
        }
    }

    /// The usage of the cache by groups. It includes the same changes as ``page(_:)``. An asset that a purge has removed is counted
    /// until its file is deleted. Throws `.invalidField` for an invalid prefix or depth.
    package func usage(_ query: UsageQuery) async throws(CacheError) -> AssetUsage {
        try await settle()
        return try await context.store.catalog.usage(query, at: context.wallClock.now())
    }

    /// The number of assets on all pages of a list.
    package func count(_ query: AssetQuery) async throws(CacheError) -> Int {
        try await context.store.catalog.assetCount(resolved(query))
    }

    /// Adds the keys and other spellings of the query's URLs.
    private func resolved(_ query: AssetQuery) -> AssetQuery {
        var query = query
        if let urls = query.urls {
            let parsed = urls.compactMap { try? context.upstreams.client.parse(url: $0) }
            query.urls = urls + parsed.flatMap { PurgeNames.spellings(of: $0) }
            query.urlKeys = parsed.flatMap(PurgeNames(resolver: resolver).keys)
        }
        return query
    }

    /// Returns one asset; throws `.notFound` if it is unknown.
    package func asset(_ id: AssetID) async throws(CacheError) -> AssetSummary {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        guard let record = asset.record else { throw Self.unknown(id) }
        return summary(of: record, cachedBytes: asset.look { $0.ledger.extents.byteCount })
    }

    /// As ``AssetResolver/key(of:)``.
    package func key(of id: AssetID) async throws(CacheError) -> String? { try await resolver.key(of: id) }

    /// Changes an asset. Throws `.notFound` if it is unknown, and `.invalidField("pinnedUntilAt")` for a time in the
    /// past.
    package func patch(_ id: AssetID, _ patch: AssetPatch) async throws(CacheError) -> AssetSummary {
        if let end = patch.pinnedUntil, end <= context.wallClock.now() {
            throw .invalid("pinnedUntilAt", "The pin's end is in the past; give a time in the future.")
        }
        try await context.commits.flush()
        let limit = configuration.policy.settings.maxPinnedBytes
        let updated = try await context.store.updateAsset(id, patch, maxPinnedBytes: limit)
        guard let stored = updated else { throw Self.unknown(id) }
        // The space ledger follows at once, so that a new pin protects the segments before the open asset is updated.
        context.space.with { space in
            if stored.record.isPinned { space.pinned.insert(id) } else { space.pinned.remove(id) }
        }
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        asset.change { state in
            state.record?.isPinned = stored.record.isPinned
            state.record?.pinnedUntil = stored.record.pinnedUntil
            state.record?.tags = stored.record.tags
            state.record?.ttl = stored.record.ttl
            state.record?.verify = stored.record.verify
            // A new lifetime counts from the last response of the upstream.
            if let ttl = patch.ttl.value, let received = state.record?.generation.receivedAt {
                state.record?.generation.freshUntil = received + ttl
            }
            asset.refreshRow(state)
            if patch.tags != nil { context.space.own(id, by: state.owners, extents: state.ledger.kept) }
            return ((), [])
        }
        return try await self.asset(id)
    }

    /// Removes the asset at once; soft: marks it stale, so that the upstream must confirm it before its next use.
    package func delete(_ id: AssetID, isSoft: Bool) async throws(CacheError) {
        context.recentPurges.add(PurgeScope(AssetSelection(ids: [id])))
        context.refusals.forget(id)
        do throws(CacheError) {
            let asset = try await held(id)
            context.peers.purged(asset.target.originName)
            context.openAssets.release(asset)
        } catch  where !isSoft && error.isOfOneFile {
            context.peers.purged(nil)  // an unreadable asset is removed as well
        }
        context.recentPurges.add(PurgeScope(AssetSelection(ids: [id])))
        if isSoft {
            try await evictor.expire([id])
        } else {
            try await evictor.purge([id])
        }
    }

    /// Returns the ranges of the asset that are on disk.
    package func extents(of id: AssetID) async throws(CacheError) -> [ByteRange] {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        return asset.look { $0.ledger.extents.runs }
    }

    /// Evicts the bytes of `range` that are on disk, except those that are being sent. Returns the number of evicted
    /// bytes.
    package func dropExtents(of id: AssetID, in range: ByteRange) async throws(CacheError) -> Int64 {
        context.openAssets.release(try await held(id))
        return try await evictor.drop([range], of: id, because: .purge)
    }

    /// Returns the asset divided into `buckets` of equal size; empty while its length is unknown.
    package func map(of id: AssetID, buckets: Int) async throws(CacheError) -> [MapBucket] {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        let (extents, length) = asset.look { ($0.ledger.extents, $0.ledger.length ?? 0) }
        guard length > 0 else { return [] }
        let count = Int64(min(Int64(buckets), length))
        return (0..<count).map { index in
            let range = length.share(index, of: count)..<length.share(index + 1, of: count)
            let cached = Double(extents.byteCount(in: range)) / Double(range.length)
            return MapBucket(
                range: range, cached: cached, heat: context.space.with { $0.reads(of: id, in: range) })
        }
    }

    /// Cancels the asset's fills, the one that determines its metadata included; stored bytes stay. Returns their
    /// number.
    package func cancelFills(of id: AssetID) async throws(CacheError) -> Int {
        if let asset = context.openAssets.acquire(id) {
            defer { context.openAssets.release(asset) }
            let count = asset.cancelFills()
            if count > 0 || asset.record != nil { return count }
        }
        guard try await context.store.catalog.asset(id) != nil else { throw Self.unknown(id) }
        return 0
    }

    // MARK: Parts

    /// The error for an asset that is not in the catalog.
    static func unknown(_ id: AssetID) -> CacheError { CacheError(.notFound, "There is no asset \(id).") }

    /// The asset with a new hold; throws `.notFound` if it is unknown.
    func held(_ id: AssetID) async throws(CacheError) -> OpenAsset {
        guard let asset = try await evictor.openKnown(id) else { throw Self.unknown(id) }
        guard asset.record != nil else {
            context.openAssets.release(asset)
            throw Self.unknown(id)
        }
        return asset
    }

    private func summary(of record: AssetRecord, cachedBytes: Int64) -> AssetSummary {
        // The blocks of a closed asset are not measured for a list: its bytes are rounded up to pages of 4 KiB.
        var summary = AssetSummary(record: record, cachedBytes: cachedBytes, diskBytes: (cachedBytes + 4095) & ~4095)
        if let origin = resolver.origins[record.origin]?.origin, !record.isBelow(origin.settings.baseURL),
            let target = try? resolver.target(of: record), target.hasMoved(since: record)
        {
            summary.record.generation.freshUntil = nil  // its bytes come from another server
        }
        guard let asset = context.openAssets.acquire(record.id) else { return summary }
        defer { context.openAssets.release(asset) }
        asset.look { state in
            summary.diskBytes = state.diskBytes
            summary.filePath = state.ledger.isComplete && !state.isSpilled ? state.file?.plainPath : nil
            summary.activeReaders = state.ledger.readerCount
            summary.activeFills = state.ledger.fillCount
        }
        return summary
    }
}

extension Int64 {
    /// The offset of share `index` of `count` equal shares, rounded down; computed without overflow.
    fileprivate func share(_ index: Int64, of count: Int64) -> Int64 {
        count.dividingFullWidth(multipliedFullWidth(by: index)).quotient
    }
}
