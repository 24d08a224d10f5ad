package import CacheCore
import CacheStore

extension AssetCache {
    // MARK: Assets

    /// A page of assets; a malformed cursor is `.invalidField("cursor")`. What is not yet committed is not listed.
    package func assets(
        _ query: AssetQuery
    ) async throws(CacheError) -> (items: [AssetSummary], nextCursor: String?) {
        try await context.commits.flush()
        let page = try await context.store.catalog.assetPage(query)
        return (page.items.map { summary(of: $0.record, cachedBytes: $0.cachedBytes) }, page.nextCursor)
    }

    package func asset(_ id: AssetID) async throws(CacheError) -> AssetSummary {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        guard let record = asset.record else { throw Self.unknown(id) }
        return summary(of: record, cachedBytes: asset.look { $0.ledger.extents.byteCount })
    }

    package func patchAsset(_ id: AssetID, _ patch: AssetPatch) async throws(CacheError) -> AssetSummary {
        try await context.commits.flush()
        let change = AssetChange(isPinned: patch.isPinned, tags: patch.tags, ttl: patch.ttl)
        guard let stored = try await context.store.catalog.updateAsset(id, change) else { throw Self.unknown(id) }
        context.space.with { space in
            if stored.record.isPinned { space.pinned.insert(id) } else { space.pinned.remove(id) }
        }
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        asset.change { state in
            state.record?.isPinned = stored.record.isPinned
            state.record?.tags = stored.record.tags
            state.record?.ttl = stored.record.ttl
            if case .some(.some(let ttl)) = patch.ttl, let received = state.record?.generation.receivedAt {
                state.record?.generation.freshUntil = received + ttl
            }
            return ((), [])
        }
        if let record = asset.record { context.commits.refreshed(record) }
        return try await self.asset(id)
    }

    /// Takes the asset away at once; soft: it must only be confirmed by the upstream before it is used again.
    package func deleteAsset(_ id: AssetID, isSoft: Bool) async throws(CacheError) {
        context.refusals.forget(id)
        let asset = try await held(id)
        context.openAssets.release(asset)
        if isSoft {
            try await expireSoftly([id])
        } else {
            try await evictor.remove([id], because: Self.deleted)
        }
    }

    package func extents(of id: AssetID) async throws(CacheError) -> [ByteRange] {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        return asset.look { $0.ledger.extents.runs }
    }

    /// Drops what is on disk of `range`; answers how many bytes. What is being sent just now stays.
    package func dropExtents(of id: AssetID, in range: ByteRange) async throws(CacheError) -> Int64 {
        context.openAssets.release(try await held(id))
        return try await evictor.drop([range], of: id)
    }

    /// The asset cut into `buckets` of equal size; empty while its length is not known.
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

    /// Stops the asset's fills; what arrived stays. Answers how many there were.
    package func cancelFills(of id: AssetID) async throws(CacheError) -> Int {
        let asset = try await held(id)
        defer { context.openAssets.release(asset) }
        return asset.cancelFills()
    }

    // MARK: Evictions and purges

    package func evict(_ goal: EvictionGoal, isDryRun: Bool) async throws(CacheError) -> EvictionReport {
        let bytes =
            switch goal {
            case .free(let bytes): bytes
            case .target(let target): max(0, context.space.with { $0.usedBytes } - target)
            }
        var report = EvictionReport(isDryRun: isDryRun, freedBytes: 0, entries: [], assets: 0)
        for group in evictor.victims(toFree: bytes) {
            let key = try await key(of: group.asset)
            let freed = isDryRun ? group.bytes : try await evictor.drop(group.ranges, of: group.asset)
            guard freed > 0 else { continue }
            if !isDryRun { context.counters.evicted(segments: group.ranges.count, bytes: freed) }
            report.add(
                EvictionReport.Entry(assetID: group.asset, key: key, ranges: group.ranges, bytes: freed))
        }
        return report
    }

    package func purge(
        _ selection: PurgeSelection, isSoft: Bool, isDryRun: Bool
    ) async throws(CacheError) -> EvictionReport {
        try await context.commits.flush()
        let urls = try selection.urls.map { (texts) throws(CacheError) in try normal(texts) }
        let chosen = try await context.store.catalog.assetIDs(
            matching: AssetSelection(
                origin: selection.origin, prefix: selection.prefix, tag: selection.tag, urls: urls))
        var report = EvictionReport(isDryRun: isDryRun, freedBytes: 0, entries: [], assets: 0)
        for asset in chosen {
            report.add(
                EvictionReport.Entry(
                    assetID: asset.id, key: try await key(of: asset.id), ranges: [], bytes: asset.cachedBytes))
        }
        if isSoft { report.freedBytes = 0 }
        guard !isDryRun else { return report }
        context.refusals.forgetAll()
        if isSoft {
            try await expireSoftly(chosen.map(\.id))
        } else {
            try await evictor.remove(chosen.map(\.id), because: Self.deleted)
        }
        return report
    }

    // MARK: Parts

    static func unknown(_ id: AssetID) -> CacheError { CacheError(.notFound, "There is no asset \(id).") }
    private static let deleted = CacheError(.assetChanged, "The asset was deleted by an administrator.")

    private func held(_ id: AssetID) async throws(CacheError) -> OpenAsset {
        guard let asset = try await evictor.openKnown(id) else { throw Self.unknown(id) }
        guard asset.record != nil else {
            context.openAssets.release(asset)
            throw Self.unknown(id)
        }
        return asset
    }

    private func key(of id: AssetID) async throws(CacheError) -> String {
        if let asset = context.openAssets.acquire(id) {
            defer { context.openAssets.release(asset) }
            return asset.target.key
        }
        return try await context.store.catalog.asset(id)?.record.key ?? ""
    }

    private func normal(_ urls: [String]) throws(CacheError) -> [String] {
        var normal: [String] = []
        for url in urls { normal.append(try context.upstream.parse(url: url).text) }
        return normal
    }

    private func expireSoftly(_ ids: [AssetID]) async throws(CacheError) {
        try await context.commits.flush()  // what waits for its commit would make them fresh again
        for id in ids {
            _ = try await context.store.catalog.updateAsset(id, AssetChange(freshUntil: .some(nil)))
            guard let asset = context.openAssets.acquire(id) else { continue }
            asset.change { state in
                state.record?.generation.freshUntil = nil
                return ((), [])
            }
            context.openAssets.release(asset)
        }
    }

    private func summary(of record: AssetRecord, cachedBytes: Int64) -> AssetSummary {
        // A closed asset's blocks are not measured for a list: whole pages of 4 KiB are what a sparse file uses.
        var summary = AssetSummary(record: record, cachedBytes: cachedBytes, diskBytes: (cachedBytes + 4095) & ~4095)
        guard let asset = context.openAssets.acquire(record.id) else { return summary }
        defer { context.openAssets.release(asset) }
        asset.look { state in
            summary.diskBytes = state.diskBytes
            summary.filePath = state.ledger.isComplete ? state.file?.path : nil
            summary.activeReaders = state.ledger.readerCount
            summary.activeFills = state.ledger.fillCount
        }
        return summary
    }
}

extension Int64 {
    /// The first `index` of `count` equal shares, rounded down; without overflow.
    fileprivate func share(_ index: Int64, of count: Int64) -> Int64 {
        count.dividingFullWidth(multipliedFullWidth(by: index)).quotient
    }
}
