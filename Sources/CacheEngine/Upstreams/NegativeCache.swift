import CacheCore
import Synchronization

/// Stores refusals of upstreams that may be repeated without a request while they are fresh (RFC 9111 §4); in memory
/// only.
final class NegativeCache: Sendable {
    /// An error status of an upstream, with its lifetime.
    struct Refusal: Sendable {
        var status: Int
        /// The values of `WWW-Authenticate` for the reader.
        var challenges: [String] = []
        /// The name of the asset's origin.
        var origin: String
        var receivedAt: Timestamp
        var freshness: Freshness

        /// The error that repeats the refusal.
        var error: CacheError {
            CacheError(
                .upstreamRefused(status: status, .init(challenges: challenges)),
                "The upstream answered with status \(status).")
        }

        /// The remaining lifetime at `now`; nil if it has expired.
        func timeToLive(at now: Timestamp) -> Duration? {
            freshness.freshUntil.flatMap { $0 > now ? $0.since(now) : nil }
        }

        /// The age at `now` (RFC 9111 §4.2.3).
        func age(at now: Timestamp) -> Duration { freshness.initialAge + max(.zero, now.since(receivedAt)) }
    }

    /// Each shard's lock guards its refusals.
    private let shards = Sharded { [AssetID: Refusal]() }
    /// The maximum number of refusals in a shard.
    private let limit: Int

    init(limit: Int = 10_000) { self.limit = limit / shards.count }

    /// Stores a refusal. A full shard drops its expired entries, and all entries if none has expired.
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

    /// Removes the refusals of the selected origins.
    func forgetAll(ofOrigins isSelected: (String) -> Bool) {
        _ = shards.map { refusals in refusals = refusals.filter { !isSelected($0.value.origin) } }
    }
}
