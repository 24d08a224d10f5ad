import CacheCore

/// Open assets by name, how many hold each, and in which order the others were let go; every step is O(1).
struct OpenAssetTable {
    final class Entry {
        let asset: OpenAsset
        /// Readers, fills and administrators that hold it.
        fileprivate(set) var users: Int
        /// When it was last let go; orders what is closed first.
        fileprivate(set) var idleSince: UInt64
        fileprivate let place: Int

        fileprivate init(_ asset: OpenAsset, since turn: UInt64, at place: Int) {
            self.asset = asset
            users = 0
            idleSince = turn
            self.place = place
        }
    }

    private var entries: [AssetID: Entry] = [:]
    /// By place.
    private var ids: [AssetID] = []
    private var free: [Int] = []
    /// Those that nobody holds, longest idle first.
    private var idle = PlaceOrder()
    private var turn: UInt64 = 0

    subscript(id: AssetID) -> Entry? { entries[id] }

    var all: [OpenAsset] { entries.values.map(\.asset) }

    /// Answers the asset of that name, held once more.
    mutating func hold(_ id: AssetID) -> OpenAsset? {
        guard let entry = entries[id] else { return nil }
        entry.users += 1
        idle.remove(entry.place)
        return entry.asset
    }

    /// Whether the asset is the one in the table: only then it is held once less.
    mutating func letGo(_ asset: OpenAsset) -> Bool {
        guard let entry = entries[asset.id], entry.asset === asset else { return false }
        turn += 1
        entry.users -= 1
        entry.idleSince = turn
        if entry.users == 0 { idle.append(entry.place) }
        return true
    }

    /// Puts an asset that nobody holds in, in place of what has its name.
    mutating func insert(_ asset: OpenAsset) {
        remove(asset.id)
        let place = free.popLast() ?? ids.count
        if place == ids.count { ids.append(asset.id) } else { ids[place] = asset.id }
        entries[asset.id] = Entry(asset, since: turn, at: place)
        idle.append(place)
    }

    mutating func remove(_ id: AssetID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        idle.remove(entry.place)
        free.append(entry.place)
    }

    /// Takes out all that nobody holds.
    mutating func removeIdle() {
        while let place = idle.first { remove(ids[place]) }
    }

    /// Those that nobody holds beyond so many, longest idle first.
    func idle(beyond limit: Int) -> [Entry] {
        var surplus: [Entry] = []
        var next = idle.first
        while let place = next, surplus.count < idle.count - limit {
            if let entry = entries[ids[place]] { surplus.append(entry) }
            next = idle.next(after: place)
        }
        return surplus
    }
}
