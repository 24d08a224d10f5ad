import CacheCore
import CacheStore
import Synchronization

/// Which assets are in use: at most one `OpenAsset` answers for an asset at a time.
///
/// They are kept in shards: there is no lock that every read takes.
final class OpenAssets: Sendable {
    private struct State {
        var table = OpenAssetTable()
        /// Those that another generation, or a purge, has taken out of the table while somebody still holds them.
        var detached: [ObjectIdentifier: (asset: OpenAsset, users: Int)] = [:]
        /// Assets that are let go at a moment of uptime: readers that were told of them may be on their way.
        var lingering: [(asset: OpenAsset, until: Duration)] = []
        /// Assets whose rows are just being removed, with how many removals each.
        var removing: [AssetID: Int] = [:]
        /// Grow with each beginning and end of a removal, one for every so many identifiers.
        var removals = [UInt64](repeating: 0, count: 64)
    }

    /// What a look into the catalog must be compared with before it is believed.
    struct Moment: Sendable {
        fileprivate let removals: UInt64
        /// The asset's row is being removed: whatever the catalog says of it is over.
        let isRemoving: Bool
    }

    /// An asset that nobody held when it was looked at.
    struct Idle: Sendable {
        let asset: OpenAsset
        fileprivate let since: UInt64
    }

    /// What a look at many rows of the catalog must be compared with.
    struct Removals: Sendable {
        /// Of each shard.
        fileprivate let counts: [[UInt64]]
    }

    private let shards: Shards<State>
    /// Idle assets that are kept open in each shard.
    private let idleLimit: Int

    init(idleLimit: Int = 512, shards: Int = 16) {
        self.shards = Shards(count: shards) { State() }
        self.idleLimit = idleLimit / shards
    }

    /// The open asset of that name, held until `release`.
    func acquire(_ id: AssetID) -> OpenAsset? {
        shards[id].value.withLock { $0.table.hold(id) }
    }

    /// The open asset of that name, for a look at it: it is not held.
    subscript(id: AssetID) -> OpenAsset? { shards[id].value.withLock { $0.table[id]?.asset } }

    func moment(for id: AssetID, _ commits: CommitQueue) -> Moment {
        let (removals, isRemoving) = shards[id].value.withLock { state in
            (state.removals[place(of: id)], state.removing[id] != nil)
        }
        // A removal whose commit failed is over for whoever ordered it, and still to come.
        return Moment(removals: removals, isRemoving: isRemoving || commits.isTakingOut(id))
    }

    var removals: Removals { Removals(counts: shards.map(\.removals)) }

    /// Whether the asset is not open, and none of its name has been removed `since`, or is just being.
    func isClosed(_ id: AssetID, since: Removals) -> Bool {
        shards[id].value.withLock { state in
            state.table[id] == nil && state.removing[id] == nil
                && state.removals[place(of: id)] == since.counts[shards.place(of: id)][place(of: id)]
        }
    }

    /// Puts `asset` into the table, unless somebody else was faster; answers the one in the table, held. Nil where a
    /// removal has begun or ended since `moment`: what was read from the catalog may be over.
    func acquire(orInsert asset: OpenAsset, asOf moment: Moment) -> OpenAsset? {
        shards[asset.id].value.withLock { state -> OpenAsset? in
            guard state.removals[place(of: asset.id)] == moment.removals else { return nil }
            if state.table[asset.id] == nil { state.table.insert(asset) }
            return state.table.hold(asset.id)
        }
    }

    /// From now until `endRemoval` the assets' rows are not believed.
    func beginRemoval(of ids: [AssetID]) {
        for id in ids {
            shards[id].value.withLock { state in
                state.removals[place(of: id)] += 1
                state.removing[id, default: 0] += 1
            }
        }
    }

    func endRemoval(of ids: [AssetID]) {
        for id in ids {
            shards[id].value.withLock { state in
                state.removals[place(of: id)] += 1
                let left = (state.removing[id] ?? 1) - 1
                state.removing[id] = left > 0 ? left : nil
            }
        }
    }

    private func place(of id: AssetID) -> Int { Int(id.low / UInt64(shards.count) % 64) }

    /// Every open asset of that name, the one in the table and those that were taken out of it, held.
    func acquireAll(_ id: AssetID) -> [OpenAsset] {
        shards[id].value.withLock { state in
            let detached = state.detached.filter { $0.value.asset.id == id }
            for key in detached.keys { state.detached[key]?.users += 1 }
            return detached.values.map(\.asset) + [state.table.hold(id)].compactMap(\.self)
        }
    }

    func retain(_ asset: OpenAsset) {
        shards[asset.id].value.withLock { state in
            if state.table[asset.id]?.asset === asset {
                _ = state.table.hold(asset.id)
            } else {
                state.detached[ObjectIdentifier(asset), default: (asset, 0)].users += 1
            }
        }
    }

    func release(_ asset: OpenAsset) {
        let isLast = shards[asset.id].value.withLock { state -> Bool in
            if state.table.letGo(asset) { return false }
            let users = (state.detached[ObjectIdentifier(asset)]?.users ?? 1) - 1
            state.detached[ObjectIdentifier(asset)] = users > 0 ? (asset, users) : nil
            return users <= 0
        }
        if isLast { giveBack(asset) }
    }

    /// Takes over a hold on an asset, to let it go at `until` of the uptime.
    func release(_ asset: OpenAsset, at until: Duration) {
        shards[asset.id].value.withLock { $0.lingering.append((asset, until)) }
    }

    /// Lets go of the assets that are due.
    func releaseDue(at now: Duration) {
        let due = shards.map { state in
            let due = state.lingering.filter { $0.until <= now }.map(\.asset)
            state.lingering.removeAll { $0.until <= now }
            return due
        }
        for asset in due.flatMap(\.self) { release(asset) }
    }

    /// Takes the asset out of the table, and its row out of the catalog with the next commit; whoever holds it goes on
    /// with it.
    func detach(_ asset: OpenAsset) { replace(asset, by: nil, begun: nil) }

    /// As `detach`, if its caller is the only one who holds it; answers whether it did.
    func detach(ifOnlyHeld asset: OpenAsset) -> Bool {
        shards[asset.id].value.withLock { state in
            guard let entry = state.table[asset.id], entry.asset === asset, entry.users == 1 else { return false }
            state.table.remove(asset.id)
            asset.context.commits.discard(asset.id)
            state.detached[ObjectIdentifier(asset)] = (asset, 1)
            return true
        }
    }

    /// What is known of the asset has proved wrong: it begins anew without a byte, and the upstream is asked what it is.
    func forget(_ asset: OpenAsset) {
        guard var generation = asset.record?.generation else { return detach(asset) }
        generation.number += 1
        generation.freshUntil = nil
        supersede(asset, by: generation)
    }

    /// The upstream's bytes have changed: `generation` opens, and the present one serves its readers to the end of what is
    /// on disk or on the way. `isSequential`: its bytes come in one transfer.
    func supersede(_ asset: OpenAsset, by generation: Generation, isSequential: Bool = false) {
        let (target, known) = asset.look { ($0.target, $0.record) }
        defer { asset.retire(CacheError(.assetChanged, "The upstream's bytes changed."), for: nil) }
        guard var record = known else { return }
        record.generation = generation
        record.url = target.url
        let successor = OpenAsset(
            target: target, record: record, extents: ByteRangeSet(), file: nil, isSequential: isSequential,
            context: asset.context)
        guard replace(asset, by: successor, begun: generation.isStorable ? record : nil) else { return }
        uncount(asset)
    }

    /// As `supersede`, where bytes of the `successor` are on the way already; it is held for the transfer that brings them.
    /// Answers false, and changes nothing, where the asset has been superseded or removed before.
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

    /// Puts an asset that is held outside the table in the place of `former`; answers false where that is no longer there.
    func promote(_ asset: OpenAsset, over former: OpenAsset) -> Bool {
        let (record, file) = asset.look { ($0.record, $0.file) }
        guard let record, let file, file.name != nil, replace(former, by: asset, begun: record, file: file) else {
            return false
        }
        uncount(former)
        return true
    }

    /// The generation that has taken the asset's place and may be read from already, held; nil where there is none.
    func acquireSuccessor(of asset: OpenAsset) -> OpenAsset? {
        guard let successor = asset.look({ $0.successor }) else { return nil }
        return shards[asset.id].value.withLock { state in
            if state.table[asset.id]?.asset === successor { return state.table.hold(asset.id) }
            // Released by all, its bytes are given back.
            guard state.detached[ObjectIdentifier(successor)] != nil else { return nil }
            state.detached[ObjectIdentifier(successor)]?.users += 1
            return successor
        }
    }

    /// As `detach`; none of its bytes is among those that may be evicted any more.
    func giveUp(_ asset: OpenAsset) { if replace(asset, by: nil, begun: nil) { uncount(asset) } }

    private func uncount(_ asset: OpenAsset) {
        let runs = asset.look { $0.ledger.extents.runs }
        asset.context.space.with { space in for run in runs { space.gone(run, of: asset.id) } }
    }

    /// Those that nobody holds and that exceed the limit, longest idle first. They stay in the table until `close`.
    func idleSurplus() -> [Idle] {
        shards.map { state in
            state.table.idle(beyond: idleLimit).map { Idle(asset: $0.asset, since: $0.idleSince) }
        }.flatMap(\.self)
    }

    /// Takes out those that nobody has held since they were found idle; all they know must be in the catalog.
    func close(_ surplus: [Idle]) {
        for idle in surplus {
            let id = idle.asset.id
            shards[id].value.withLock { state in
                guard let entry = state.table[id], entry.asset === idle.asset else { return }
                guard entry.users == 0, entry.idleSince == idle.since else { return }
                state.removals[place(of: id)] += 1
                state.table.remove(id)
            }
        }
    }

    /// Takes out all that nobody holds: the end of service.
    func closeAll() {
        _ = shards.map { $0.table.removeIdle() }
    }

    var all: [OpenAsset] { shards.map(\.table.all).flatMap(\.self) }

    /// Those that another generation, or a purge, has taken out of the table while somebody still holds them.
    var detached: [OpenAsset] { shards.map { $0.detached.values.map(\.asset) }.flatMap(\.self) }

    /// Answers whether the asset was in the table. `begun`: the successor's row, `file` its file; nil: there is none any
    /// more. The successor is held by `holds`.
    ///
    /// The catalog must hear of an asset's lives in their order, or a row is made again that was taken away, or taken away
    /// that was just made:
    ///
    /// 1. The asset reports under its own lock, and is disowned under it: nothing comes from it after that.
    /// 2. Its row is given up or handed over under the lock of its shard: who begins it anew can do so only after that.
    @discardableResult
    private func replace(
        _ asset: OpenAsset, by successor: OpenAsset?, begun: AssetRecord?, file: SparseFile? = nil, holds: Int = 0
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
            if let begun { commits.began(begun, file: file) } else { commits.discard(asset.id) }
            if entry.users > 0 { state.detached[ObjectIdentifier(asset)] = (asset, entry.users) }
            return entry.users == 0
        }
        if isUnused == true { giveBack(asset) }
        return isUnused != nil
    }

    /// A detached file goes with its last user, and its blocks with it.
    private func giveBack(_ asset: OpenAsset) {
        asset.context.space.used(changedBy: -asset.look { $0.diskBytes })
    }
}
