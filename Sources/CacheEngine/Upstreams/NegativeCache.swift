import CacheCore

/// Stores refusals of upstreams that may be repeated without a request while they are fresh (RFC 9111 §4); in memory
/// only.
final class NegativeCache: Sendable {
    /// A response of the upstream that is repeated with its own body.
    struct PassedResponse: Sendable {
        var generation: Generation
        /// The body; nil before its end. The response is then repeated for `HEAD` only.
        var bytes: [UInt8]?

        /// The length in bytes of the longest body that is stored. Refusals with a longer one are repeated with a
        /// problem document.
        static let maxBytes = 64 << 10
    }

    /// An error status of an upstream, with its lifetime.
    struct Refusal: Sendable {
        var status: Int
        /// The values of `WWW-Authenticate` for the reader.
        var challenges: [String] = []
        /// The asset, without the fields of a reader.
        var target: AssetTarget
        var receivedAt: Timestamp
        /// The uptime when it was received.
        var uptime: Duration
        var freshness: Freshness
        /// Nil: the refusal is repeated with a problem document.
        var passed: PassedResponse?

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
    private let shards: Sharded<BoundedTable<AssetID, Refusal>>

    /// - Parameter limit: The maximum number of refusals. Each 2 KiB of a body count as one more.
    init(limit: Int = 10_000) {
        let count = 16
        shards = Sharded(.leaf, count: count) {
            BoundedTable(capacity: limit / count) { 1 + ($0.passed?.bytes?.count ?? 0) / (2 << 10) }
        }
    }

    /// Stores a refusal. A full shard drops the refusals that were used least recently.
    func keep(_ refusal: Refusal, of asset: AssetID) { shards[asset].value.withLock { $0[asset] = refusal } }

    /// Adds the body of a refusal that was received at that time; nil: it is too long. No effect if the refusal has been
    /// removed or replaced.
    func complete(_ asset: AssetID, receivedAt: Timestamp, with bytes: [UInt8]?) {
        shards[asset].value.withLock { refusals in
            guard var refusal = refusals[asset], refusal.receivedAt == receivedAt, refusal.passed != nil else { return }
            if bytes == nil { refusal.passed = nil } else { refusal.passed?.bytes = bytes }
            refusals[asset] = refusal
        }
    }

    subscript(asset: AssetID) -> Refusal? { shards[asset].value.withLock { $0[asset] } }

    func forget(_ asset: AssetID) { shards[asset].value.withLock { $0[asset] = nil } }

    /// Removes the refusals of the selected assets.
    func forgetAll(where isSelected: (AssetTarget) -> Bool) {
        _ = shards.map { refusals in refusals.removeAll { isSelected($0.target) } }
    }
}
