import CacheCore
import Synchronization

/// Accounts for the disk space of one job's items and protects them from eviction, so that a job never evicts its own items.
///
/// The protection ends with the last reference to the room, which the queue drops when the job is finished.
final class PrefetchRoom: Sendable {
    private struct State {
        var claims: [AssetID: ByteRangeSet] = [:]
        var bytes: Int64
        var bytesByOrigin: [String: Int64] = [:]
    }

    private let space: Space
    private let state: Mutex<State>
    /// Assets of items that succeeded before a restart; they are protected, too.
    private let earlier: [AssetID]
    private let earlierBytes: Int64

    /// `pinnedBytes`: the bytes on disk of pinned assets, which cannot be evicted either.
    init(space: Space, pinnedBytes: Int64, earlier items: [JobItemRecord]) {
        self.space = space
        earlier = items.compactMap(\.assetID)
        let bytes = items.reduce(0) { $0 + ($1.bytesTotal ?? 0) }
        earlierBytes = bytes
        state = Mutex(State(bytes: pinnedBytes + bytes))
        space.with { ledger in
            for id in earlier { ledger.hold(id) }
            ledger.heldBytes += bytes
        }
    }

    deinit {
        let (claims, earlier, earlierBytes) = (state.withLock { $0.claims }, earlier, earlierBytes)
        space.with { ledger in
            for id in claims.keys { ledger.unhold(id) }
            for id in earlier { ledger.unhold(id) }
            ledger.heldBytes -= earlierBytes + claims.values.reduce(0) { $0 + $1.byteCount }
        }
    }

    /// Claims space for `runs` of an asset. Throws `.storageFull` if they do not fit into `capacity` beside the job's other
    /// items and the pinned assets, or into the origin's quota beside the job's other items of that origin.
    func claim(_ runs: [ByteRange], of asset: OpenAsset, capacity: Int64?) throws(CacheError) {
        let isPinned = space.with { $0.pinned.contains(asset.id) }
        let present = isPinned ? asset.look { $0.ledger.extents } : ByteRangeSet()
        let quota = asset.target.settings.quota.maxBytes
        let origin = asset.target.originName
        let missing = state.withLock { state -> (what: String, bytes: Int64)? in
            let known = state.claims[asset.id]
            var claim = known ?? ByteRangeSet()
            for run in runs { claim.insert(run) }
            let added = claim.byteCount - (known?.byteCount ?? 0)
            let counted = known == nil ? max(0, added - present.byteCount) : added
            if let capacity, state.bytes + counted > capacity { return ("cache", capacity - state.bytes) }
            let ofOrigin = state.bytesByOrigin[origin, default: 0]
            if let quota, ofOrigin + counted > quota { return ("origin's quota", quota - ofOrigin) }
            state.claims[asset.id] = claim
            state.bytes += counted
            state.bytesByOrigin[origin] = ofOrigin + counted
            space.with { ledger in
                if known == nil { ledger.hold(asset.id) }
                ledger.heldBytes += added
            }
            return nil
        }
        guard let missing else { return }
        let bytes = runs.reduce(0) { $0 + $1.length }
        throw CacheError(
            .storageFull,
            "The item has \(bytes) bytes; beside pinned assets and the job's other items the \(missing.what) has room for \(max(0, missing.bytes))."
        )
    }
}
