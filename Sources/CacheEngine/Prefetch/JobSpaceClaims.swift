import CacheCore

/// The disk space claimed by the items of all unfinished jobs. Eviction protects claimed ranges, so that a job never
/// evicts its own items.
final class PrefetchClaims: Sendable {
    /// The claim on one asset, by all jobs together.
    private struct Claim {
        var ranges = ByteRangeSet()
        var origin: String
        /// The number of items that claim the asset.
        var items = 0
    }

    /// Invariant: `bytes` is the sum of all claims, and `bytesByOrigin` the same sum by origin.
    private struct State {
        var claims: [AssetID: Claim] = [:]
        var bytes: Int64 = 0
        var bytesByOrigin: [String: Int64] = [:]
        /// The bytes on disk of pinned assets.
        var pinned: [AssetID: Int64] = [:]
        /// The sum of `pinned`, without assets that are claimed: their claims count already.
        var pinnedBytes: Int64 = 0
        /// Assets with ended claims, and the uptime until which eviction still protects them.
        var lingering: [AssetID: Duration] = [:]
    }

    private let space: SpaceReservations
    /// The monotonic time.
    private let uptime: @Sendable () -> Duration
    /// Guards the claims and their sums. The lock of the space ledger is taken inside it, never the reverse.
    private let state = OrderedMutex(.jobClaims, State())
    /// The maximum time that eviction gets to catch up with a finished job.
    private static let lingering = Duration.seconds(5)

    init(space: SpaceReservations, uptime: @escaping @Sendable () -> Duration) {
        self.space = space
        self.uptime = uptime
    }

    /// Replaces the sizes of the pinned assets.
    func adoptPinned(_ pinned: [AssetID: Int64]) {
        state.withLock { state in
            state.pinned = pinned
            state.pinnedBytes = pinned.reduce(0) { $0 + (state.claims[$1.key] == nil ? $1.value : 0) }
        }
    }

    /// Claims the runs if all claims and pinned assets stay within `limit` bytes, and the claims of the origin within
    /// `quota` bytes. Otherwise returns the name of the exceeded limit, and the bytes left within it.
    ///
    /// `isAgain`: the item has claimed the asset before, so it is not counted again.
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

    /// Ends the claims of the given number of items on each asset.
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

    /// Ends the protection of assets without claims, as soon as no eviction is due: the space taken by the job must be
    /// recovered from other assets. The protection also ends after its time limit.
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

/// The claims of one job. They end with the last reference; the queue drops its own when the job is finished.
final class JobSpaceClaims: Sendable {
    private let claims: PrefetchClaims
    /// Guards the number of the job's items that claim each asset.
    private let items = OrderedMutex<[AssetID: Int]>(.leaf, [:])

    init(_ claims: PrefetchClaims) { self.claims = claims }

    deinit { claims.release(items.withLock { $0 }) }

    /// Claims space for an item that succeeded before a restart, without a limit: its bytes are on disk already.
    func claimAgain(_ runs: [ByteRange], of id: AssetID, from origin: String) {
        _ = claims.claim(runs, of: id, from: origin, isAgain: false, limit: .max, quota: .max)
        items.withLock { $0[id, default: 0] += 1 }
    }

    /// Ends the claim of an item that has failed.
    func withdraw(_ id: AssetID) {
        items.withLock { $0[id, default: 0] -= 1 }
        claims.release([id: 1])
    }

    /// Claims space for the runs of an item. `isAgain`: the item has claimed the asset before.
    ///
    /// Throws `.storageFull` if the runs do not fit beside pinned assets and the items of unfinished jobs. The limit is
    /// the high watermark of the cache, above which eviction starts, and the maximum quota of the origin.
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
            "The item has \(bytes) bytes; beside pinned assets and jobs the \(missing.of) has \(missing.bytes) left."
        )
    }
}
