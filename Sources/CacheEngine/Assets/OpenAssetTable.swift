import CacheCore

/// Open assets by ID with their numbers of holds, and the idle ones in order of release. Each operation on one asset is
/// O(1).
struct OpenAssetTable {
    /// One open asset in the table.
    final class Entry {
        let asset: OpenAsset
        /// The number of holds by readers, fills and administrative calls.
        fileprivate(set) var users: Int
        /// The logical time of the last release; idle assets are closed in this order.
        fileprivate(set) var idleSince: UInt64
        /// Whether all bytes were evicted while the asset had other users; its last user removes it.
        var isEmptied = false
        /// The index of the entry in `ids` and `idle`.
        fileprivate let slot: Int

        fileprivate init(_ asset: OpenAsset, since turn: UInt64, at slot: Int) {
            self.asset = asset
            users = 0
            idleSince = turn
            self.slot = slot
        }
    }

    private var entries: [AssetID: Entry] = [:]
    /// Asset IDs by index.
    private var ids: [AssetID] = []
    /// Unused indices.
    private var free: [Int] = []
    /// Indices of assets without holds, longest idle first.
    private var idle = IndexList()
    /// Logical clock: the number of releases.
    private var turn: UInt64 = 0

    subscript(id: AssetID) -> Entry? { entries[id] }

    var all: [OpenAsset] { entries.values.map(\.asset) }

    /// Adds a hold and returns the asset; nil if the table has no asset of that ID.
    mutating func hold(_ id: AssetID) -> OpenAsset? {
        guard let entry = entries[id] else { return nil }
        entry.users += 1
        idle.remove(entry.slot)
        return entry.asset
    }

    /// The effect of `release`.
    enum Release {
        case released
        /// The caller still has the last hold: the asset is to be removed if it has no bytes.
        case emptied
        /// The asset is not the one in the table.
        case absent
    }

    /// Releases a hold if the asset is the one in the table.
    mutating func release(_ asset: OpenAsset) -> Release {
        guard let entry = entries[asset.id], entry.asset === asset else { return .absent }
        if entry.isEmptied, entry.users == 1 {
            entry.isEmptied = false
            return .emptied
        }
        turn += 1
        entry.users -= 1
        entry.idleSince = turn
        if entry.users == 0 { idle.append(entry.slot) }
        return .released
    }

    /// Inserts an asset without holds; it replaces an asset of the same ID.
    mutating func insert(_ asset: OpenAsset) {
        remove(asset.id)
        let slot = free.popLast() ?? ids.count
        if slot == ids.count { ids.append(asset.id) } else { ids[slot] = asset.id }
        entries[asset.id] = Entry(asset, since: turn, at: slot)
        idle.append(slot)
    }

    mutating func remove(_ id: AssetID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        idle.remove(entry.slot)
        free.append(entry.slot)
    }

    /// Removes all assets without holds, and returns them: their files must not be closed under a lock.
    mutating func removeIdle() -> [OpenAsset] {
        var removed: [OpenAsset] = []
        while let slot = idle.first {
            if let entry = entries[ids[slot]] { removed.append(entry.asset) }
            remove(ids[slot])
        }
        return removed
    }

    /// Entries without holds beyond the limit, longest idle first.
    func idle(beyond limit: Int) -> [Entry] {
        var surplus: [Entry] = []
        var next = idle.first
        while let slot = next, surplus.count < idle.count - limit {
            if let entry = entries[ids[slot]] { surplus.append(entry) }
            next = idle.next(after: slot)
        }
        return surplus
    }
}
