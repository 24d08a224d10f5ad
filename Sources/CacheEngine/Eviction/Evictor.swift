import CacheCore
import CacheStore
import CacheTracing
import Logging

/// Frees disk space: chooses victims with the space ledger, lets open assets release the ranges, and commits the
/// removal.
struct Evictor: Sendable {
    let context: EngineContext
    let resolver: AssetResolver

    /// The maximum number of segments per batch: small batches free space soon and keep commits short.
    private static let batch = 128
    /// The number of batches per round. The next round measures the disk again and removes expired assets first.
    private static let round = 64

    private var space: SpaceReservations { context.space }

    /// Runs one round of evictions as the policy demands, and grants the space that fills wait for. If evictions fail,
    /// waiting fills are granted space over the limit, and the error is thrown.
    func makeRoom() async throws(CacheError) {
        let before = context.counters.evictions
        let span = space.excess().bytes > 0 ? context.tracer.span("eviction", .internal) : nil
        defer {
            let evicted = context.counters.evictions
            span?.set("larder.evicted.segments", evicted.count - before.count)
            span?.set("larder.bytes", evicted.bytes - before.bytes)
            span?.end()
        }
        do {
            try await evict()
        } catch {
            span?.fail(error.code.name)
            grantOverLimit()
            throw error
        }
    }

    /// Grants space over the limit, because nothing more can be evicted and readers take precedence over the capacity.
    /// The minimum free disk space stays free even so: new bytes are then kept in memory, as far as it suffices, and
    /// the other fills wait.
    private func grantOverLimit() {
        guard space.isShortOfDisk else { return space.grantOverLimit() }
        context.store.preferMemory(true)
        space.grantOverLimit(within: context.store.spareMemory)
    }

    /// Evicts until there is no excess, nothing more can be evicted, or the round is over.
    private func evict() async throws(CacheError) {
        guard !context.store.isReadByFormerProcess else { return grantOverLimit() }
        try measureDisk()
        var tried: Set<SegmentID> = []
        try await keepQuotas(besides: &tried)
        var batches = 0
        while batches < Self.round {
            // The excess is computed for every batch, because reservations and releases continue.
            let (excess, reason, isAwaited) = space.excess()
            guard excess > 0 else { break }
            // Only new segments are known before the count. The excess is checked each second, and after the count.
            if reason != .freeDisk, space.awaitsCount(at: context.uptime()) { return }
            guard
                let gone = try await evictBatch(
                    toFree: excess, because: reason, isUrgent: isAwaited, besides: &tried)
            else {
                return grantOverLimit()
            }
            // Measured again only in the next round of evictions: a file system may take its time.
            space.gained(gone.reduce(0) { $0 + $1.bytes })
            space.grantWaiting()
            batches += gone.isEmpty ? 0 : 1
        }
        space.grantWaiting()
        if space.isDeadlocked || batches < Self.round && space.isAwaited && space.isShortOfDisk { grantOverLimit() }
        if batches == Self.round { space.notify() }
    }

    /// Evicts from each owner above its maximum quota, from its own assets only.
    private func keepQuotas(besides tried: inout Set<SegmentID>) async throws(CacheError) {
        for (owner, _) in space.with({ $0.overdrafts }) {
            while let overdraft = space.with({ $0.overdrafts.first { $0.owner == owner } }),
                let gone = try await evictBatch(
                    toFree: overdraft.bytes, because: .quota, isUrgent: true, besides: &tried, of: owner)
            {
                space.gained(gone.reduce(0) { $0 + $1.bytes })
            }
        }
    }

    /// Frees `bytes`, or as much as possible, in batches. Returns the evicted ranges.
    func free(_ bytes: Int64) async throws(CacheError) -> EvictionReport {
        var report = EvictionReport(isDryRun: false)
        var tried: Set<SegmentID> = []
        while report.freedBytes < bytes,
            let gone = try await evictBatch(
                toFree: bytes - report.freedBytes, because: .request, isUrgent: true, besides: &tried)
        {
            for entry in gone { report.add(entry) }
        }
        return report
    }

    /// The segments that would be evicted to free `bytes`. They are chosen on a copy, so that the policy's state stays
    /// as it is.
    func victims(toFree bytes: Int64) -> [(victim: Victim, range: ByteRange)] {
        var copy = space.with { $0 }
        let victims = copy.victims(toFree: bytes, at: context.wallClock.now(), isUrgent: true)
        return victims.map { ($0, copy.range(of: $0.segment)) }
    }

    /// The next segments to be evicted to free `bytes`, at most `limit`, with their state. Owners above their maximum
    /// quota come first.
    func next(toFree bytes: Int64, limit: Int) -> [(account: SegmentAccount, range: ByteRange)] {
        let before = space.with { $0 }
        let (reason, now) = (space.excess().reason, context.wallClock.now())
        let busy = busy(on: before.grid)
        var (copy, missing) = (before, bytes)
        var next: [(account: SegmentAccount, range: ByteRange)] = []
        for owner in before.overdrafts.map({ Optional($0.owner) }) + [nil] {
            // An eviction for one owner may also reduce the usage of another.
            let excess = owner.map { owner in copy.overdrafts.first { $0.owner == owner }?.bytes ?? 0 } ?? missing
            let victims = copy.victims(
                toFree: min(excess, missing), at: now, isUrgent: owner != nil, besides: busy,
                limit: limit - next.count, of: owner)
            for victim in victims {
                missing -= victim.bytes
                let range = before.range(of: victim.segment)
                copy.gone(range, of: victim.segment.asset)
                if let account = before.account(of: victim.segment, going: reason, from: owner) {
                    next.append((account, range))
                }
            }
        }
        return next
    }

    /// A dry-run report of the victims, without keys.
    func plan(_ victims: [(victim: Victim, range: ByteRange)]) -> EvictionReport {
        victims.reduce(into: EvictionReport(isDryRun: true)) { report, next in
            report.add(
                EvictionReport.Entry(
                    assetID: next.victim.segment.asset, key: "", ranges: [next.range], bytes: next.victim.bytes))
        }
    }

    /// Chooses the next batch of victims, in up to three attempts:
    ///
    /// 1. without segments in use, because parts of these would have to stay;
    /// 2. with segments in use;
    /// 3. with segments of owners at their minimum quota.
    private func batch(
        toFree bytes: Int64, isUrgent: Bool, besides tried: Set<SegmentID>, of owner: QuotaOwner?
    ) -> [(victim: Victim, range: ByteRange)] {
        // Computed before the ledger is locked, because it takes the locks of all assets.
        let busy = busy(on: space.grid).union(tried)
        let now = context.wallClock.now()
        return space.with { ledger in
            var tries = [(busy, true)]
            if busy.count > tried.count { tries.append((tried, true)) }
            if ledger.guarantees { tries.append((tried, false)) }
            for (besides, keepsQuotas) in tries {
                let victims = ledger.victims(
                    toFree: bytes, at: now, isUrgent: isUrgent, besides: besides, limit: Self.batch, of: owner,
                    keepsQuotas: keepsQuotas)
                if !victims.isEmpty { return victims.map { ($0, ledger.range(of: $0.segment)) } }
            }
            return []
        }
    }

    /// The segments with bytes that are pinned: leased, about to be sent to readers, or being fetched.
    func busy(on grid: SegmentGrid) -> Set<SegmentID> {
        context.openAssets.all.reduce(into: []) { busy, asset in
            let runs = asset.look { state in
                state.ledger.busy.runs.flatMap { state.ledger.extents.runs(in: $0) }
            }
            for index in runs.flatMap({ grid.indices(of: $0) }) {
                busy.insert(SegmentID(asset: asset.id, index: index))
            }
        }
    }

    /// Evicts the next batch of victims. Returns the evicted ranges; nil if nothing more can be evicted.
    ///
    /// `tried` collects segments that stayed, because their bytes are leased; they are not tried again in this round.
    private func evictBatch(
        toFree bytes: Int64, because reason: EvictionReason, isUrgent: Bool, besides tried: inout Set<SegmentID>,
        of owner: QuotaOwner? = nil
    ) async throws(CacheError) -> [EvictionReport.Entry]? {
        let victims = batch(toFree: bytes, isUrgent: isUrgent, besides: tried, of: owner)
        guard !victims.isEmpty else { return nil }
        let young = young(victims)
        let gone: [EvictionReport.Entry]
        do throws(CacheError) {
            gone = try await drop(plan(victims).entries, because: reason).filter { $0.bytes > 0 }
        } catch  where error.code == .storageFull {
            gone = try await dropWhole(plan(victims).entries, because: reason, after: error)
        }
        // A segment that was evicted completely is not recorded: under constant load it is refetched, and must be
        // evictable again.
        tried.formUnion(space.with { ledger in victims.map(\.victim.segment).filter(ledger.has) })
        for entry in gone {
            context.counters.evicted(
                segments: entry.ranges.count, bytes: entry.bytes,
                youngBytes: entry.bytes(in: young[entry.assetID] ?? []))
        }
        return gone
    }

    /// The age up to which evicted bytes count as young: the disk is too small for the traffic if many are.
    private static let youth = Duration.seconds(3600)

    /// The ranges of the victims that arrived within the last hour, by asset.
    private func young(_ victims: [(victim: Victim, range: ByteRange)]) -> [AssetID: [ByteRange]] {
        let limit = context.wallClock.now() - Self.youth
        let young = space.with { ledger in victims.filter { ledger.arrived($0.victim.segment, after: limit) } }
        return Dictionary(grouping: young, by: \.victim.segment.asset).mapValues { $0.map(\.range) }
    }

    /// Evicts the stored, unleased bytes of `ranges`. Returns the number of evicted bytes.
    func drop(
        _ ranges: [ByteRange], of id: AssetID, because reason: EvictionReason
    ) async throws(CacheError) -> Int64 {
        let plan = EvictionReport.Entry(assetID: id, key: "", ranges: ranges, bytes: 0)
        return try await drop([plan], because: reason).reduce(0) { $0 + $1.bytes }
    }

    /// Evicts the stored, unleased bytes of the plan in one commit. Returns the evicted ranges. An asset without
    /// remaining bytes is removed with its record and its file, in this commit or after its last user has left.
    ///
    /// 1. The assets are acquired. The space ledger forgets the segments of unknown assets.
    /// 2. `beginEviction` moves the ranges to the state `evicting`: readers that need them wait, and no fill writes
    ///    there.
    /// 3. The commit queue receives the cuts. From `beginRemoval` on, the rows of emptied assets are not used.
    /// 4. The commit removes the ranges from the rows, then from the disk.
    /// 5. `finishEviction` makes the ranges available to fills again, also if the commit has failed.
    private func drop(
        _ plan: [EvictionReport.Entry], because reason: EvictionReason
    ) async throws(CacheError) -> [EvictionReport.Entry] {
        guard !context.store.isReadByFormerProcess else {
            throw CacheError(
                .overloaded, "The former process of the service still sends stored bytes; try again in some seconds.")
        }
        let assets = try await openToTake(plan.map(\.assetID))
        defer { for asset in assets.values { context.openAssets.release(asset) } }
        var opened: [(asset: OpenAsset, ranges: [ByteRange])] = []
        for entry in plan {
            if let asset = assets[entry.assetID] {
                opened.append((asset, entry.ranges))
            } else {
                space.with { ledger in for range in entry.ranges { ledger.gone(range, of: entry.assetID) } }
            }
        }
        let evicting = opened.compactMap { $0.asset.beginEviction($0.ranges) }
        let useless = evicting.filter(\.isAll).map(\.asset.id)
        context.openAssets.beginRemoval(of: useless)
        defer { context.openAssets.endRemoval(of: useless) }
        for part in evicting where !part.isAll || !part.asset.removeIfEmpty() {
            context.commits.cut(part.file, part.runs)
        }
        defer { for part in evicting { part.asset.finishEviction(part.runs, of: part.file) } }
        try await context.commits.flush()
        for part in evicting { context.evictionLog.note(reason, part.runs, of: part.asset.target) }
        return evicting.map { part in
            EvictionReport.Entry(
                assetID: part.asset.id, key: part.asset.target.key, ranges: part.asset.cutOff(part.ranges),
                bytes: part.runs.byteCount)
        }
    }

    /// Removes whole assets. Their readers finish with the bytes on disk, late bytes are discarded, and new readers
    /// start with an empty asset. `error` is reported to readers that need bytes not on disk.
    func remove(
        _ ids: [AssetID], because reason: EvictionReason, telling error: CacheError
    ) async throws(CacheError) {
        var rest = ids[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(Self.batch))
            rest = rest.dropFirst(batch.count)
            var assets = Array(try await openToTake(batch).values)
            defer { for asset in assets { context.openAssets.release(asset) } }
            context.openAssets.beginRemoval(of: batch)
            defer { context.openAssets.endRemoval(of: batch) }
            while let asset = assets.popLast() {  // an asset that is not in use is closed, which frees its space
                detach(asset, because: reason, telling: error)
                context.openAssets.release(asset)
            }
            try await context.commits.flush()
        }
    }

    /// Ends an open asset: its row is removed with the next commit, and its readers get only bytes on disk.
    private func detach(_ asset: OpenAsset, because reason: EvictionReason, telling error: CacheError) {
        context.openAssets.detach(asset)
        asset.stopFetching(error)
        let runs = asset.look { $0.ledger.extents.runs }
        context.evictionLog.note(reason, runs, of: asset.target)
        space.with { ledger in
            ledger.pinned.remove(asset.id)
            for run in runs { ledger.gone(run, of: asset.id) }
        }
    }

    /// The error for readers of a purged asset.
    private static let purged = CacheError(.assetChanged, "The asset was deleted by an administrator.")

    /// Removes the assets for an administrator.
    func purge(_ ids: [AssetID]) async throws(CacheError) {
        try await remove(ids, because: .purge, telling: Self.purged)
    }

    /// As `purge`, for an open asset, without waiting for the commit.
    func purge(_ asset: OpenAsset) { detach(asset, because: .purge, telling: Self.purged) }

    /// Marks the assets stale, in the catalog and in open assets: they are revalidated before the next use.
    func expire(_ ids: [AssetID]) async throws(CacheError) {
        try await context.commits.flush()  // a later commit of pending changes would make them fresh again
        try await context.store.catalog.expire(ids)
        context.openAssets.outdateRows()
        for id in ids {
            guard let asset = context.openAssets.acquire(id) else { continue }
            asset.change { state in
                state.record?.generation.freshUntil = nil
                return ((), [])
            }
            context.openAssets.release(asset)
        }
    }

    /// Measures the free disk space, and ends the use of memory in place of the disk when enough is free.
    func measureDisk() throws(CacheError) {
        let free = try context.store.freeDiskBytes()
        space.measured(free: free, refused: context.store.refusedWrites, at: context.uptime())
        if !space.isShortOfDisk { context.store.preferMemory(false) }
    }

    /// Acquires the known assets, each once and several at a time: each is loaded from the catalog and the disk, which
    /// takes longer than the eviction of a small asset. If one fails, none is acquired.
    private func openToTake(_ ids: [AssetID]) async throws(CacheError) -> [AssetID: OpenAsset] {
        let outcomes = await Array(Set(ids)).mapConcurrently(atMost: Self.opening) {
            id -> Result<OpenAsset?, CacheError> in
            do throws(CacheError) { return .success(try await openToTake(id)) } catch { return .failure(error) }
        }
        var (assets, failure): ([AssetID: OpenAsset], CacheError?) = ([:], nil)
        for outcome in outcomes {
            switch outcome {
            case .success(let asset): if let asset { assets[asset.id] = asset }
            case .failure(let error): failure = failure ?? error
            }
        }
        guard let failure else { return assets }
        for asset in assets.values { context.openAssets.release(asset) }
        throw failure
    }

    /// The number of assets that are opened at a time.
    private static let opening = 16

    /// Acquires an asset to evict from it; nil if there is none. An asset with a file that cannot be opened is removed
    /// with its record, because it would block the eviction of all others.
    private func openToTake(_ id: AssetID) async throws(CacheError) -> OpenAsset? {
        do throws(CacheError) {
            return try await openKnown(id)
        } catch {
            guard error.isOfOneFile else { throw error }
            context.logger.error(
                "an asset cannot be opened and is removed", metadata: ["asset": "\(id)", "error": "\(error)"])
            context.openAssets.beginRemoval(of: [id])
            defer { context.openAssets.endRemoval(of: [id]) }
            // The file is deleted after its row, without being opened.
            context.commits.discard(id)
            space.with { ledger in
                ledger.pinned.remove(id)
                ledger.count([], of: id, lastUse: context.wallClock.now())
            }
            return nil
        }
    }

    /// Acquires an asset, even if its origin is no longer mounted; nil if it is unknown. The caller must release it.
    func openKnown(_ id: AssetID) async throws(CacheError) -> OpenAsset? {
        while true {
            if let asset = context.openAssets.acquire(id) { return asset }
            // The row counts only if no removal begins or ends while it is loaded; otherwise the loop starts again.
            let moment = context.openAssets.moment(for: id, context.commits)
            guard !moment.isRemoving, let loaded = try await context.store.load(id) else { return nil }
            let asset = OpenAsset(target: resolver.shelved(loaded.record), loaded: loaded, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }
}
