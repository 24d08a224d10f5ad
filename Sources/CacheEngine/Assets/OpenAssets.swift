import CacheCore
import CacheStore

/// Registry of open assets: at most one `OpenAsset` answers for an asset ID at a time.
///
/// It is sharded, so that no lock is taken by every read.
final class OpenAssets: Sendable {
    /// The state of one shard, guarded by the shard's lock.
    private struct State {
        /// The open asset of each ID.
        var table = OpenAssetTable()
        /// Assets that another generation or a purge has removed from the table while they are held; `users`: the
        /// number of holds.
        var detached: [ObjectIdentifier: (asset: OpenAsset, users: Int)] = [:]
        /// Holds that are released at an uptime: readers that were referred to these assets may still arrive.
        var lingering: [(asset: OpenAsset, until: Duration)] = []
        /// Assets with rows that are being removed, with the number of removals in progress.
        var removing: [AssetID: Int] = [:]
        /// Counters of the starts and ends of removals; each counter covers a part of the IDs.
        var removals = [UInt64](repeating: 0, count: 64)
    }

    /// Removal state before a catalog read. The row is valid only if no removal has started or ended since.
    struct Moment: Sendable {
        fileprivate let removals: UInt64
        /// The asset's row is being removed: the catalog's data of it are outdated.
        let isRemoving: Bool
    }

    /// An asset without holds at the time of the observation.
    struct Idle: Sendable {
        let asset: OpenAsset
        fileprivate let since: UInt64
    }

    /// Removal counters before a scan of the catalog.
    struct Removals: Sendable {
        /// The counters of each shard.
        fileprivate let counts: [[UInt64]]
    }

    /// Each shard's lock guards one `State`.
    private let shards: Sharded<State>
    /// The number of idle assets that each shard keeps open.
    private let idleLimit: Int

    init(idleLimit: Int = 512, shards: Int = 16) {
        self.shards = Sharded(.openAssets, count: shards) { State() }
        self.idleLimit = idleLimit / shards
    }

    /// Returns the open asset of that ID with a new hold; the caller must `release` it.
    func acquire(_ id: AssetID) -> OpenAsset? {
        shards[id].value.withLock { $0.table.hold(id) }
    }

    /// The open asset of that ID, without a hold.
    subscript(id: AssetID) -> OpenAsset? { shards[id].value.withLock { $0.table[id]?.asset } }

    /// The removal state of an asset before a catalog read.
    func moment(for id: AssetID, _ commits: CommitQueue) -> Moment {
        let (removals, isRemoving) = shards[id].value.withLock { state in
            (state.removals[counter(of: id)], state.removing[id] != nil)
        }
        // A removal with a failed commit has ended for its caller, but its row is still to be removed.
        return Moment(removals: removals, isRemoving: isRemoving || commits.isTakingOut(id))
    }

    /// The removal counters of all shards.
    var removals: Removals { Removals(counts: shards.map(\.removals)) }

    /// Whether the asset is not open and no removal of it is in progress or has occurred since `since`.
    func isClosed(_ id: AssetID, since: Removals) -> Bool {
        shards[id].value.withLock { state in
            state.table[id] == nil && state.removing[id] == nil
                && state.removals[counter(of: id)] == since.counts[shards.index(of: id)][counter(of: id)]
        }
    }

    /// Inserts `asset` unless another thread was faster. Returns the asset in the table with a new hold. Nil if a
    /// removal has started or ended since `moment`: the data from the catalog may be outdated.
    func acquire(orInsert asset: OpenAsset, asOf moment: Moment) -> OpenAsset? {
        shards[asset.id].value.withLock { state -> OpenAsset? in
            guard state.removals[counter(of: asset.id)] == moment.removals else { return nil }
            if state.table[asset.id] == nil { state.table.insert(asset) }
            return state.table.hold(asset.id)
        }
    }

    /// Marks the rows of the assets as outdated until `endRemoval`.
    func beginRemoval(of ids: [AssetID]) {
        for id in ids {
            shards[id].value.withLock { state in
                state.removals[counter(of: id)] += 1
                state.removing[id, default: 0] += 1
            }
        }
    }

    /// Invalidates all moments before this call: rows that were read since then are read again.
    func outdateRows() {
        _ = shards.map { state in for index in state.removals.indices { state.removals[index] += 1 } }
    }

    /// Ends one removal of each asset.
    func endRemoval(of ids: [AssetID]) {
        for id in ids {
            shards[id].value.withLock { state in
                state.removals[counter(of: id)] += 1
                let left = (state.removing[id] ?? 1) - 1
                state.removing[id] = left > 0 ? left : nil
            }
        }
    }

    /// The index of the removal counter of an asset ID.
    private func counter(of id: AssetID) -> Int { Int(id.low / UInt64(shards.count) % 64) }

    /// All open assets of that ID, in the table and detached, each with a new hold.
    func acquireAll(_ id: AssetID) -> [OpenAsset] {
        shards[id].value.withLock { state in
            let detached = state.detached.filter { $0.value.asset.id == id }
            for key in detached.keys { state.detached[key]?.users += 1 }
            return detached.values.map(\.asset) + [state.table.hold(id)].compactMap(\.self)
        }
    }

    /// Adds a hold to an asset in the table or outside it.
    func retain(_ asset: OpenAsset) {
        shards[asset.id].value.withLock { state in
            if state.table[asset.id]?.asset === asset {
                _ = state.table.hold(asset.id)
            } else {
                state.detached[ObjectIdentifier(asset), default: (asset, 0)].users += 1
            }
        }
    }

    /// Releases a hold. A detached asset releases its disk usage with its last hold; an emptied one is removed first.
    func release(_ asset: OpenAsset) {
        let (release, isLast) = shards[asset.id].value.withLock { state in
            let release = state.table.release(asset)
            guard release == .absent else { return (release, false) }
            let users = (state.detached[ObjectIdentifier(asset)]?.users ?? 1) - 1
            state.detached[ObjectIdentifier(asset)] = users > 0 ? (asset, users) : nil
            return (release, users <= 0)
        }
        if isLast { releaseDisk(asset) }
        guard release == .emptied else { return }
        asset.removeIfEmpty()
        self.release(asset)
    }

    /// Takes over a hold on an asset and releases it at the uptime `until`.
    func release(_ asset: OpenAsset, at until: Duration) {
        shards[asset.id].value.withLock { $0.lingering.append((asset, until)) }
    }

    /// Releases the holds that are due.
    func releaseDue(at now: Duration) {
        let due = shards.map { state in
            let due = state.lingering.filter { $0.until <= now }.map(\.asset)
            state.lingering.removeAll { $0.until <= now }
            return due
        }
        for asset in due.flatMap(\.self) { release(asset) }
    }

    /// Removes the asset from the table, and its row from the catalog with the next commit. Its holders keep using it.
    func detach(_ asset: OpenAsset) { replace(asset, by: nil, begun: nil) }

    /// Whether the asset is in the table, and the caller has its only hold.
    func isOnlyHeld(_ asset: OpenAsset) -> Bool {
        shards[asset.id].value.withLock { state in
            state.table[asset.id].map { $0.asset === asset && $0.users == 1 } ?? false
        }
    }

    /// As `detach`, if the caller has the only hold. Returns false if the asset has other users: the last of them removes
    /// it, unless it has bytes again by then.
    func detachWhenUnused(_ asset: OpenAsset) -> Bool {
        shards[asset.id].value.withLock { state in
            guard let entry = state.table[asset.id], entry.asset === asset else { return false }
            entry.isEmptied = entry.users > 1
            guard !entry.isEmptied else { return false }
            state.removals[counter(of: asset.id)] += 1
            state.table.remove(asset.id)
            asset.context.commits.discard(asset.id)
            state.detached[ObjectIdentifier(asset)] = (asset, 1)
            return true
        }
    }

    /// Restarts an asset with a known state that proved wrong: without bytes, and to be confirmed by the upstream
    /// before use.
    func reset(_ asset: OpenAsset) {
        guard var generation = asset.record?.generation else { return detach(asset) }
        generation.number += 1
        generation.freshUntil = nil
        supersede(asset, by: generation)
    }

    /// Replaces the asset by an empty one of `generation`. The old asset serves its readers with the bytes on disk or
    /// in flight.
    ///
    /// `isSequential`: all bytes of the new generation come in one transfer.
    func supersede(_ asset: OpenAsset, by generation: Generation, isSequential: Bool = false) {
        let (target, known) = asset.look { ($0.target, $0.record) }
        defer { asset.stopFetching(CacheError(.assetChanged, "The upstream's bytes changed."), for: nil) }
        guard var record = known else { return }
        record.generation = generation
        record.url = target.url
        let successor = OpenAsset(
            target: target, record: record, extents: ByteRangeSet(), file: nil, isSequential: isSequential,
            context: asset.context)
        guard replace(asset, by: successor, begun: generation.isStorable ? record : nil) else { return }
        uncount(asset)
    }

    /// Replaces the asset by a `successor` with bytes in flight; it gets a hold for the transfer. Returns false, and
    /// changes nothing, if the asset was already superseded or removed.
    func supersede(_ asset: OpenAsset, by successor: OpenAsset) -> Bool {
        let (record, file) = successor.look { ($0.record, $0.file) }
        let isKept = record?.generation.isStorable == true && file?.name != nil
        guard replace(asset, by: isKept ? successor : nil, begun: isKept ? record : nil, file: file, holds: 1) else {
            return false
        }
        if !isKept { retain(successor) }
        uncount(asset)
        return true
    }

    /// Replaces `former` by an asset that is held outside the table. Returns false if `former` is no longer in the
    /// table. `isConversion`: both have the same bytes.
    func promote(_ asset: OpenAsset, over former: OpenAsset, isConversion: Bool = false) -> Bool {
        let (record, file) = asset.look { ($0.record, $0.file) }
        let formerFile = isConversion ? former.look { $0.file?.name } : nil
        guard let record, let file, file.name != nil,
            replace(former, by: asset, begun: record, file: file, converting: formerFile)
        else { return false }
        uncount(former)
        return true
    }

    /// The readable successor of the asset, with a new hold; nil if there is none.
    func acquireSuccessor(of asset: OpenAsset) -> OpenAsset? {
        guard let successor = asset.look({ $0.successor }) else { return nil }
        return shards[asset.id].value.withLock { state in
            if state.table[asset.id]?.asset === successor { return state.table.hold(asset.id) }
            // The bytes of a successor without holds are already released.
            guard state.detached[ObjectIdentifier(successor)] != nil else { return nil }
            state.detached[ObjectIdentifier(successor)]?.users += 1
            return successor
        }
    }

    /// As `detach`, and removes the asset's bytes and its pin from the space ledger: they are no candidates for eviction
    /// any more.
    func discard(_ asset: OpenAsset) {
        guard replace(asset, by: nil, begun: nil) else { return }
        uncount(asset)
        asset.context.space.with { _ = $0.pinned.remove(asset.id) }
    }

    /// Removes the extents of the asset from the space ledger.
    private func uncount(_ asset: OpenAsset) {
        let runs = asset.look { $0.ledger.extents.runs }
        asset.context.space.with { space in for run in runs { space.gone(run, of: asset.id) } }
    }

    /// Idle assets above the limit, longest idle first. They stay in the table until `close`.
    func idleSurplus() -> [Idle] {
        shards.map { state in
            state.table.idle(beyond: idleLimit).map { Idle(asset: $0.asset, since: $0.idleSince) }
        }.flatMap(\.self)
    }

    /// Removes assets that had no hold since they were found idle. All their state must be in the catalog.
    func close(_ surplus: [Idle]) {
        for idle in surplus {
            let id = idle.asset.id
            shards[id].value.withLock { state in
                guard let entry = state.table[id], entry.asset === idle.asset else { return }
                guard entry.users == 0, entry.idleSince == idle.since else { return }
                state.removals[counter(of: id)] += 1
                state.table.remove(id)
            }
        }
    }

    /// Removes all idle assets at shutdown.
    func closeAll() {
        _ = shards.map { $0.table.removeIdle() }
    }

    /// All assets in the table.
    var all: [OpenAsset] { shards.map(\.table.all).flatMap(\.self) }

    /// Held assets that another generation or a purge has removed from the table.
    var detached: [OpenAsset] { shards.map { $0.detached.values.map(\.asset) }.flatMap(\.self) }

    /// Removes the asset from the table and inserts its successor, if there is one. Returns whether the asset was in
    /// the table.
    ///
    /// - `begun`: the row of the successor; nil: the row is removed.
    /// - `file`: the file of that row.
    /// - `holds`: the number of new holds on the successor.
    /// - `converting`: the file whose bytes the new file has; nil: the successor has bytes of its own.
    ///
    /// The catalog must receive the lives of one asset ID in order. Otherwise a removed row is recreated, or a new row
    /// removed:
    /// 1. The asset reports, and stops reporting, under its own lock: no report of it follows.
    /// 2. Its row is removed or handed over under the lock of its shard. The successor can be reported only after that.
    @discardableResult
    private func replace(
        _ asset: OpenAsset, by successor: OpenAsset?, begun: AssetRecord?, file: SparseFile? = nil, holds: Int = 0,
        converting former: FileName? = nil
    ) -> Bool {
        asset.disown()
        let isUnused = shards[asset.id].value.withLock { state -> Bool? in
            guard let entry = state.table[asset.id], entry.asset === asset else { return nil }
            state.table.remove(asset.id)
            if let successor {
                state.table.insert(successor)
                let users = state.detached.removeValue(forKey: ObjectIdentifier(successor))?.users ?? 0
                for _ in 0..<(holds + users) { _ = state.table.hold(successor.id) }
            }
            let commits = asset.context.commits
            if let begun, let file, let former {
                commits.converted(begun, from: former, to: file)
            } else if let begun {
                commits.began(begun, file: file)
            } else {
                commits.discard(asset.id)
            }
            if entry.users > 0 { state.detached[ObjectIdentifier(asset)] = (asset, entry.users) }
            return entry.users == 0
        }
        if isUnused == true { releaseDisk(asset) }
        return isUnused != nil
    }

    /// Subtracts the disk usage of a detached asset: its blocks are freed with its last user.
    private func releaseDisk(_ asset: OpenAsset) {
        asset.context.space.used(changedBy: -asset.look { $0.diskBytes })
    }
}
