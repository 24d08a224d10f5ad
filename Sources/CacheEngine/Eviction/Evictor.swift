import CacheCore
import CacheStore
import Logging

/// Makes room: chooses victims through the space ledger, has open assets give them up, and takes them off the disk.
struct Evictor: Sendable {
    let context: EngineContext
    let resolver: AssetResolver

    /// At most so many segments at a time, so that room comes soon and nothing waits for a long commit.
    private static let batch = 128
    private static let round = 64  // batches; then the disk, and what is too old, are looked at anew

    private var space: Space { context.space }

    /// Frees what the policy in force wants freed, in batches, and grants what waited for room.
    func makeRoom() async throws(CacheError) {
        do {
            try await evict()
        } catch {
            overdraw()
            throw error
        }
    }

    /// Nothing more can go: readers come before the limit. What must stay free of the disk stays free even so: what fits into
    /// memory goes there, and the rest waits until readers are past that.
    private func overdraw() {
        guard space.isShortOfDisk else { return space.overdraw() }
        context.store.spareDisk(true)
        space.overdraw(within: context.store.spareMemory)
    }

    private func evict() async throws(CacheError) {
        try measureDisk()
        var tried: Set<SegmentID> = []
        try await keepQuotas(besides: &tried)
        var batches = 0
        while batches < Self.round {
            let (excess, reason, isAwaited) = space.excess()
            guard excess > 0 else { break }
            guard
                let gone = try await evictBatch(
                    toFree: excess, because: reason, isDesperate: isAwaited, besides: &tried)
            else {
                return overdraw()
            }
            // Measured again only in the next round of evictions: a file system may take its time.
            space.gained(gone.reduce(0) { $0 + $1.bytes })
            space.grantWaiting()
            batches += gone.isEmpty ? 0 : 1
        }
        space.grantWaiting()
        if space.isDeadlocked || batches < Self.round && space.isAwaited && space.isShortOfDisk { overdraw() }
        if batches == Self.round { space.ring() }
    }

    /// Of those that have more than their quota, takes it back.
    private func keepQuotas(besides tried: inout Set<SegmentID>) async throws(CacheError) {
        for (owner, _) in space.with({ $0.overdrafts }) {
            while let overdraft = space.with({ $0.overdrafts.first { $0.owner == owner } }),
                let gone = try await evictBatch(
                    toFree: overdraft.bytes, because: .quota, isDesperate: true, besides: &tried, of: owner)
            {
                space.gained(gone.reduce(0) { $0 + $1.bytes })
            }
        }
    }

    /// Frees `bytes`, or as much as can go, in batches; answers what went.
    func free(_ bytes: Int64) async throws(CacheError) -> EvictionReport {
        var report = EvictionReport(isDryRun: false)
        var tried: Set<SegmentID> = []
        while report.freedBytes < bytes,
            let gone = try await evictBatch(
                toFree: bytes - report.freedBytes, because: .request, isDesperate: true, besides: &tried)
        {
            for entry in gone { report.add(entry) }
        }
        return report
    }

    /// The segments that would be evicted to free `bytes`. A copy is asked: the policy in force learns nothing from it.
    func victims(toFree bytes: Int64) -> [(victim: Victim, range: ByteRange)] {
        var copy = space.with { $0 }
        let victims = copy.victims(toFree: bytes, at: context.wallClock.now(), isDesperate: true)
        return victims.map { ($0, copy.range(of: $0.segment)) }
    }

    /// The segments that would go next to free `bytes`, at most `limit`, and how they stand.
    func next(toFree bytes: Int64, limit: Int) -> [(account: SegmentAccount, range: ByteRange)] {
        let before = space.with { $0 }
        let (reason, now) = (space.excess().reason, context.wallClock.now())
        let busy = busy(on: before.grid)
        var (copy, missing) = (before, bytes)
        var next: [(account: SegmentAccount, range: ByteRange)] = []
        for owner in before.overdrafts.map({ Optional($0.owner) }) + [nil] {
            // What went for another one may have been its, too.
            let excess = owner.map { owner in copy.overdrafts.first { $0.owner == owner }?.bytes ?? 0 } ?? missing
            let victims = copy.victims(
                toFree: min(excess, missing), at: now, isDesperate: owner != nil, besides: busy,
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

    func plan(_ victims: [(victim: Victim, range: ByteRange)]) -> EvictionReport {
        victims.reduce(into: EvictionReport(isDryRun: true)) { report, next in
            report.add(
                EvictionReport.Entry(
                    assetID: next.victim.segment.asset, key: "", ranges: [next.range], bytes: next.victim.bytes))
        }
    }

    /// The next batch of victims; those in use only where there are no others, for of these not all would go, and only then
    /// what is left to others by their quotas.
    private func batch(
        toFree bytes: Int64, isDesperate: Bool, besides tried: Set<SegmentID>, of owner: QuotaOwner?
    ) -> [(victim: Victim, range: ByteRange)] {
        let busy = busy(on: space.grid).union(tried)
        let now = context.wallClock.now()
        return space.with { ledger in
            var tries = [(busy, true)]
            if busy.count > tried.count { tries.append((tried, true)) }
            if ledger.guarantees { tries.append((tried, false)) }
            for (besides, keepsQuotas) in tries {
                let victims = ledger.victims(
                    toFree: bytes, at: now, isDesperate: isDesperate, besides: besides, limit: Self.batch, of: owner,
                    keepsQuotas: keepsQuotas)
                if !victims.isEmpty { return victims.map { ($0, ledger.range(of: $0.segment)) } }
            }
            return []
        }
    }

    /// The segments with bytes that readers are sent next, or fills bring.
    private func busy(on grid: SegmentGrid) -> Set<SegmentID> {
        context.openAssets.all.reduce(into: []) { busy, asset in
            let runs = asset.look { state in
                state.ledger.busy.runs.flatMap { state.ledger.extents.runs(in: $0) }
            }
            for index in runs.flatMap({ grid.indices(of: $0) }) {
                busy.insert(SegmentID(asset: asset.id, index: index))
            }
        }
    }

    /// Takes the next victims off the disk; answers what went, nil where nothing more can go. Those of an earlier batch that
    /// stayed, being leased, are not tried twice.
    private func evictBatch(
        toFree bytes: Int64, because reason: EvictionReason, isDesperate: Bool, besides tried: inout Set<SegmentID>,
        of owner: QuotaOwner? = nil
    ) async throws(CacheError) -> [EvictionReport.Entry]? {
        let victims = batch(toFree: bytes, isDesperate: isDesperate, besides: tried, of: owner)
        guard !victims.isEmpty else { return nil }
        let gone: [EvictionReport.Entry]
        do throws(CacheError) {
            gone = try await drop(plan(victims).entries, because: reason).filter { $0.bytes > 0 }
        } catch  where error.code == .storageFull {
            gone = try await dropWhole(plan(victims).entries, because: reason, after: error)
        }
        // What went comes back under a load that never rests, and must be able to go again.
        tried.formUnion(space.with { ledger in victims.map(\.victim.segment).filter(ledger.has) })
        for entry in gone { context.counters.evicted(segments: entry.ranges.count, bytes: entry.bytes) }
        return gone
    }

    /// Takes what is on disk of `ranges`, and not leased, off the disk; answers how many bytes that were.
    func drop(
        _ ranges: [ByteRange], of id: AssetID, because reason: EvictionReason
    ) async throws(CacheError) -> Int64 {
        let plan = EvictionReport.Entry(assetID: id, key: "", ranges: ranges, bytes: 0)
        return try await drop([plan], because: reason).reduce(0) { $0 + $1.bytes }
    }

    /// Takes what is on disk of the ranges, and not leased, off the disk, all in one commit; answers what went. An asset with
    /// nothing left, and nobody using it, goes with its record and its file.
    private func drop(
        _ plan: [EvictionReport.Entry], because reason: EvictionReason
    ) async throws(CacheError) -> [EvictionReport.Entry] {
        var opened: [(asset: OpenAsset, ranges: [ByteRange])] = []
        defer { for (asset, _) in opened { context.openAssets.release(asset) } }
        for entry in plan {
            if let asset = try await openToTake(entry.assetID) {
                opened.append((asset, entry.ranges))
            } else {
                space.with { ledger in for range in entry.ranges { ledger.gone(range, of: entry.assetID) } }
            }
        }
        let leaving = opened.compactMap { $0.asset.surrender($0.ranges) }
        let useless = leaving.filter(\.isAll).map(\.asset.id)
        context.openAssets.beginRemoval(of: useless)
        defer { context.openAssets.endRemoval(of: useless) }
        for part in leaving where !part.isAll || !context.openAssets.detach(ifOnlyHeld: part.asset) {
            context.commits.cut(part.file, part.runs)
        }
        defer { for part in leaving { part.asset.gaveUp(part.runs, of: part.file) } }
        try await context.commits.flush()
        for part in leaving { context.evictionLog.note(reason, part.runs, of: part.asset.target) }
        return leaving.map { part in
            EvictionReport.Entry(
                assetID: part.asset.id, key: part.asset.target.key, ranges: part.asset.cutOff(part.ranges),
                bytes: part.runs.byteCount)
        }
    }

    /// Takes whole assets away: their readers finish on what is on disk, late bytes are dropped, and whoever asks from
    /// now on begins with nothing.
    func remove(
        _ ids: [AssetID], because reason: EvictionReason, telling error: CacheError
    ) async throws(CacheError) {
        var rest = ids[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(Self.batch))
            rest = rest.dropFirst(batch.count)
            var assets: [OpenAsset] = []
            defer { for asset in assets { context.openAssets.release(asset) } }
            for id in batch {
                if let asset = try await openToTake(id) { assets.append(asset) }
            }
            context.openAssets.beginRemoval(of: batch)
            defer { context.openAssets.endRemoval(of: batch) }
            while let asset = assets.popLast() {  // what nobody else uses is closed, and can give its space back
                defer { context.openAssets.release(asset) }
                context.openAssets.detach(asset)
                asset.retire(error)
                let runs = asset.look { $0.ledger.extents.runs }
                context.evictionLog.note(reason, runs, of: asset.target)
                space.with { ledger in
                    ledger.pinned.remove(asset.id)
                    for run in runs { ledger.gone(run, of: asset.id) }
                }
            }
            try await context.commits.flush()
        }
    }

    /// What others have left free of the disk.
    func measureDisk() throws(CacheError) {
        let free = try context.store.freeDiskBytes()
        space.measured(free: free, refused: context.store.refusedWrites, at: context.uptime())
        if !space.isShortOfDisk { context.store.spareDisk(false) }
    }

    /// The asset, held, to take something of it away; nil where there is none. One whose file cannot be opened, whatever is
    /// tried, goes as it is: else it would be in the way of all others.
    private func openToTake(_ id: AssetID) async throws(CacheError) -> OpenAsset? {
        do throws(CacheError) {
            return try await openKnown(id)
        } catch {
            guard error.isOfOneFile else { throw error }
            context.logger.error(
                "an asset cannot be opened, and goes as it is", metadata: ["asset": "\(id)", "error": "\(error)"])
            context.openAssets.beginRemoval(of: [id])
            defer { context.openAssets.endRemoval(of: [id]) }
            context.commits.discard(id)
            space.with { ledger in
                ledger.pinned.remove(id)
                ledger.count([], of: id, lastUse: context.wallClock.now())
            }
            return nil
        }
    }

    /// The asset, held until it is released; also where its origin is mounted no more. Nil where nobody knows it.
    func openKnown(_ id: AssetID) async throws(CacheError) -> OpenAsset? {
        while true {
            if let asset = context.openAssets.acquire(id) { return asset }
            let moment = context.openAssets.moment(for: id, context.commits)
            guard !moment.isRemoving, let loaded = try await context.store.load(id) else { return nil }
            let asset = OpenAsset(target: resolver.shelved(loaded.record), loaded: loaded, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }
}
