import CacheCore
import Synchronization

/// Refusals of upstreams that may be repeated unasked while they are fresh (RFC 9111 §4); in memory only.
final class RefusalShelf: Sendable {
    struct Refusal: Sendable {
        var status: Int
        var receivedAt: Timestamp
        var freshness: Freshness

        /// What is left of its lifetime at `now`; nil where that is over.
        func timeToLive(at now: Timestamp) -> Duration? {
            freshness.freshUntil.flatMap { $0 > now ? $0.since(now) : nil }
        }

        func age(at now: Timestamp) -> Duration { freshness.initialAge + max(.zero, now.since(receivedAt)) }
    }

    private let shards = Shards { [AssetID: Refusal]() }
    /// Of one shard.
    private let limit: Int

    init(limit: Int = 10_000) { self.limit = limit / shards.count }

    func keep(_ refusal: Refusal, of asset: AssetID) {
        shards[asset].value.withLock { refusals in
            if refusals.count >= limit {
                refusals = refusals.filter { $0.value.timeToLive(at: refusal.receivedAt) != nil }
            }
            if refusals.count >= limit { refusals.removeAll() }
            refusals[asset] = refusal
        }
    }

    subscript(asset: AssetID) -> Refusal? { shards[asset].value.withLock { $0[asset] } }

    func forget(_ asset: AssetID) { shards[asset].value.withLock { $0[asset] = nil } }

    func forgetAll() { _ = shards.map { $0.removeAll() } }
}
