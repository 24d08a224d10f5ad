import CacheCore
import CacheStore
import Logging

/// Makes room: chooses victims through the space ledger, has open assets give them up, and takes them off the disk.
struct Evictor: Sendable {
    let context: EngineContext
    let resolver: AssetResolver

    /// At most this many segments at a time, so that room comes soon and nothing waits for a long commit.
    private static let batch = 64

    private var space: Space { context.space }

    /// Frees what the policy in force wants freed, in batches, and grants what waited for room.
    func makeRoom() async throws(CacheError) {
        do {
            try await evict()
        } catch {
            space.overdraw()
            throw error
        }
    }

    private func evict() async throws(CacheError) {
        try measureDisk()
        var tried: Set<SegmentID> = []
        while true {
            let (excess, isAwaited) = space.excess()
            guard excess > 0 else { break }
            let now = context.wallClock.now()
            let victims = space.with {
                $0.victims(toFree: excess, at: now, isDesperate: isAwaited, besides: tried).prefix(Self.batch)
            }
            // Nothing more can go: readers come before the limit.
            guard !victims.isEmpty else { return space.overdraw() }
            tried.formUnion(victims.map(\.segment))  // what is leased, and stays, is not tried twice
            let freed = try await give(up: Array(victims))
            // Measured again only when the next round of evictions begins: a file system may take its time.
            space.with { $0.freeDiskBytes = $0.freeDiskBytes.map { $0 + freed } }
            space.grantWaiting()
        }
        space.grantWaiting()
        if space.isDeadlocked { space.overdraw() }
    }

    /// The segments that would go to free `bytes`, grouped by asset, first to go first.
    func victims(toFree bytes: Int64) -> [(asset: AssetID, ranges: [ByteRange], bytes: Int64)] {
        let now = context.wallClock.now()
        let (victims, ranges) = space.with { ledger in
            let victims = ledger.victims(toFree: bytes, at: now, isDesperate: true)
            return (victims, victims.map { ledger.range(of: $0.segment) })
        }
        var places: [AssetID: Int] = [:]
        var groups: [(asset: AssetID, ranges: [ByteRange], bytes: Int64)] = []
        for (victim, range) in zip(victims, ranges) {
            if let place = places[victim.segment.asset] {
                groups[place].ranges.append(range)
                groups[place].bytes += victim.bytes
            } else {
                places[victim.segment.asset] = groups.count
                groups.append((victim.segment.asset, [range], victim.bytes))
            }
        }
        return groups
    }

    /// Takes the victims off the disk; answers how many bytes went.
    private func give(up victims: [Victim]) async throws(CacheError) -> Int64 {
        var byAsset: [AssetID: [ByteRange]] = [:]
        for victim in victims {
            byAsset[victim.segment.asset, default: []].append(space.with { $0.range(of: victim.segment) })
        }
        var freed: Int64 = 0
        for (asset, ranges) in byAsset {
            let bytes = try await drop(ranges, of: asset)
            freed += bytes
            if bytes > 0 { context.counters.evicted(segments: ranges.count, bytes: bytes) }
        }
        return freed
    }

    /// Takes what is on disk of `ranges`, and not leased, off the disk; answers how many bytes that were. An asset with
    /// nothing left, and nobody using it, goes with its record.
    func drop(_ ranges: [ByteRange], of id: AssetID) async throws(CacheError) -> Int64 {
        guard let asset = try await openKnown(id) else {
            space.with { ledger in for range in ranges { ledger.gone(range, of: id) } }
            return 0
        }
        defer { context.openAssets.release(asset) }
        let (runs, bare, file) = asset.change { state in
            let runs = ranges.flatMap { state.ledger.surrender($0) }
            let known = 0..<(state.ledger.length ?? 0)
            let bare = ranges.map { $0.clamped(to: known) }.filter { state.ledger.extents.runs(in: $0).isEmpty }
            return ((runs, bare, state.file), [])
        }
        // What has nothing on disk is no victim any more, whatever was counted of it.
        space.with { ledger in for range in bare { ledger.gone(range, of: id) } }
        guard let file, !runs.isEmpty else { return 0 }
        do {
            try await context.commits.punch(file, runs)
        } catch {
            asset.gaveUp(runs, of: file)
            throw error
        }
        asset.gaveUp(runs, of: file)
        try await removeIfUseless(asset)
        return runs.reduce(0) { $0 + $1.length }
    }

    /// Takes whole assets away: their readers finish on what is on disk, late bytes are dropped, and whoever asks from
    /// now on begins with nothing.
    func remove(_ ids: [AssetID], because error: CacheError) async throws(CacheError) {
        var rest = ids[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(Self.batch))
            rest = rest.dropFirst(batch.count)
            var assets: [OpenAsset] = []
            defer { for asset in assets { context.openAssets.release(asset) } }
            for id in batch {
                if let asset = try await openKnown(id) { assets.append(asset) }
            }
            context.openAssets.beginRemoval(of: batch)
            defer { context.openAssets.endRemoval(of: batch) }
            // Once it is detached somebody may begin the asset anew, whose row and file are not those that are taken away.
            var lastFiles: [AssetID: FileName] = [:]
            for asset in assets {
                context.openAssets.detach(asset)
                asset.retire(error)
                lastFiles[asset.id] = asset.look { $0.file?.name }
                let runs = asset.look { $0.ledger.extents.runs }
                space.with { ledger in
                    ledger.pinned.remove(asset.id)
                    for run in runs { ledger.gone(run, of: asset.id) }
                }
            }
            try await context.commits.remove(batch, lastFiles: lastFiles)
        }
    }

    /// Removes the record of an asset of which nothing is left, unless somebody else uses it.
    private func removeIfUseless(_ asset: OpenAsset) async throws(CacheError) {
        guard asset.look({ $0.ledger.extents.isEmpty && $0.record?.isPinned == false }) else { return }
        context.openAssets.beginRemoval(of: [asset.id])
        defer { context.openAssets.endRemoval(of: [asset.id]) }
        if context.openAssets.detach(ifOnlyHeld: asset) { try await context.commits.remove([asset.id]) }
    }

    /// What others have left free of the disk.
    func measureDisk() throws(CacheError) {
        let free = try context.store.freeDiskBytes()
        space.with { $0.freeDiskBytes = free }
    }

    /// The asset, held until it is released; also where its origin is mounted no more. Nil where nobody knows it.
    func openKnown(_ id: AssetID) async throws(CacheError) -> OpenAsset? {
        while true {
            if let asset = context.openAssets.acquire(id) { return asset }
            let moment = context.openAssets.moment(for: id)
            guard !moment.isRemoving, let loaded = try await context.store.load(id) else { return nil }
            let asset = OpenAsset(target: resolver.shelved(loaded.record), loaded: loaded, context: context)
            if let opened = context.openAssets.acquire(orInsert: asset, asOf: moment) { return opened }
        }
    }
}

extension OpenAsset {
    /// The runs are off the disk.
    func gaveUp(_ runs: [ByteRange], of file: SparseFile) {
        let shrunk = change { state in
            let before = state.diskBytes
            state.diskBytes = (try? file.diskBytes()) ?? before  // measured again with the next arrival
            return (before - state.diskBytes, state.ledger.left(runs))
        }
        context.space.with { ledger in for run in runs { ledger.gone(run, of: id) } }
        context.space.used(changedBy: -shrunk)
    }
}
