import CacheCore
import Synchronization

/// The disk space that the items of all unfinished jobs claim. Claimed assets are spared by eviction, so that a job never evicts
/// its own items.
final class PrefetchClaims: Sendable {
    /// Of one asset, by all jobs together.
    private struct Claim {
        var ranges = ByteRangeSet()
        var origin: String
        var items = 0
    }

    private struct State {
        var claims: [AssetID: Claim] = [:]
        var bytes: Int64 = 0
        var bytesByOrigin: [String: Int64] = [:]
        /// The bytes on disk of pinned assets, and their sum without those that are claimed.
        var pinned: [AssetID: Int64] = [:]
        var pinnedBytes: Int64 = 0
        /// Assets whose claims have ended, and until when eviction spares them.
        var lingering: [AssetID: Duration] = [:]
    }

    private let space: Space
    private let uptime: @Sendable () -> Duration
    private let state = Mutex(State())
    /// How long eviction may take to catch up with a job that is over.
    private static let lingering = Duration.seconds(5)

    init(space: Space, uptime: @escaping @Sendable () -> Duration) {
        self.space = space
        self.uptime = uptime
    }

    func adoptPinned(_ pinned: [AssetID: Int64]) {
        state.withLock { state in
            state.pinned = pinned
            state.pinnedBytes = pinned.reduce(0) { $0 + (state.claims[$1.key] == nil ? $1.value : 0) }
        }
    }

    /// Claims the runs if all claims and pinned assets stay within `limit`, and the claims of the origin within `quota`. Answers
    /// the bytes that are left where they do not. `isAgain`: the item has claimed the asset before.
    func claim(
        _ runs: [ByteRange], of id: AssetID, from origin: String, isAgain: Bool, limit: Int64, quota: Int64
    ) -> (of: String, bytes: Int64)? {
        state.withLock { state in
            let known = state.claims[id]
            var claim = known ?? Claim(origin: origin)
            for run in runs { claim.ranges.insert(run) }
            let added = claim.ranges.byteCount - (known?.ranges.byteCount ?? 0)
            let pinned = known == nil ? state.pinned[id] ?? 0 : 0
            let used = state.bytes + state.pinnedBytes - pinned
            if used + added > limit { return ("cache", max(0, limit - used)) }
            let ofOrigin = state.bytesByOrigin[origin, default: 0]
            if ofOrigin + added > quota { return ("origin's quota", max(0, quota - ofOrigin)) }
            claim.items += isAgain ? 0 : 1
            state.claims[id] = claim
            state.bytes += added
            state.bytesByOrigin[origin] = ofOrigin + added
            state.pinnedBytes -= pinned
            space.with { ledger in
                ledger.held[id] = claim.ranges
                ledger.heldBytes += added
            }
            return nil
        }
    }

    /// Ends the claims of so many items on each asset.
    func release(_ items: [AssetID: Int]) {
        state.withLock { state in
            for (id, count) in items {
                guard var claim = state.claims[id] else { continue }
                claim.items -= count
                state.claims[id] = claim.items > 0 ? claim : nil
                guard claim.items <= 0 else { continue }
                let bytes = claim.ranges.byteCount
                state.bytes -= bytes
                state.bytesByOrigin[claim.origin, default: 0] -= bytes
                state.pinnedBytes += state.pinned[id] ?? 0
                state.lingering[id] = uptime() + Self.lingering
                space.with { $0.heldBytes -= bytes }
            }
        }
        settle()
    }

    /// Ends the protection of assets whose claims have ended, once nothing is to be evicted: the space that they took must come
    /// from others.
    func settle() {
        let (isQuiet, now) = (space.excess().bytes <= 0, uptime())
        state.withLock { state in
            for (id, end) in state.lingering where isQuiet || end <= now || state.claims[id] != nil {
                state.lingering[id] = nil
                if state.claims[id] == nil { space.with { $0.held[id] = nil } }
            }
        }
    }
}

/// The claims of one job; they end with the last reference, which the queue drops when the job is finished.
final class PrefetchRoom: Sendable {
    private let claims: PrefetchClaims
    /// How many items of the job claim each asset.
    private let items = Mutex<[AssetID: Int]>([:])

    init(_ claims: PrefetchClaims) { self.claims = claims }

    deinit { claims.release(items.withLock { $0 }) }

    /// Claims space for items that succeeded before a restart, whether there is room or not.
    func claimAgain(_ runs: [ByteRange], of id: AssetID, from origin: String) {
        _ = claims.claim(runs, of: id, from: origin, isAgain: false, limit: .max, quota: .max)
        items.withLock { $0[id, default: 0] += 1 }
    }

    /// Gives the claim of an item up that has failed.
    func withdraw(_ id: AssetID) {
        items.withLock { $0[id, default: 0] -= 1 }
        claims.release([id: 1])
    }

    /// Throws `.storageFull` if the runs do not fit into the cache beside pinned assets and the items of unfinished jobs: up to
    /// its high watermark, above which eviction would begin. `isAgain`: the item has claimed the asset before.
    func claim(
        _ runs: [ByteRange], of asset: OpenAsset, isAgain: Bool, under policy: PolicySettings
    ) throws(CacheError) {
        let limit = policy.capacityBytes.map { Int64(Double($0) * policy.highWatermark) } ?? .max
        let missing = claims.claim(
            runs, of: asset.id, from: asset.target.originName, isAgain: isAgain, limit: limit,
            quota: asset.target.settings.quota.maxBytes ?? .max)
        guard let missing else {
            if !isAgain { items.withLock { $0[asset.id, default: 0] += 1 } }
            return
        }
        let bytes = runs.byteCount
        throw CacheError(
            .storageFull,
            "The item has \(bytes) bytes; beside pinned assets and the items of unfinished jobs the \(missing.of) has room for \(missing.bytes)."
        )
    }
}
