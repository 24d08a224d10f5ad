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

    private let refusals = Mutex<[AssetID: Refusal]>([:])
    /// Whether there may be any: most reads need not look for theirs.
    private let hasSome = Atomic(false)
    private let limit: Int

    init(limit: Int = 10_000) { self.limit = limit }

    func keep(_ refusal: Refusal, of asset: AssetID) {
        refusals.withLock { refusals in
            if refusals.count >= limit {
                refusals = refusals.filter { $0.value.timeToLive(at: refusal.receivedAt) != nil }
            }
            if refusals.count >= limit { refusals.removeAll() }
            refusals[asset] = refusal
            hasSome.store(true, ordering: .releasing)
        }
    }

    subscript(asset: AssetID) -> Refusal? {
        hasSome.load(ordering: .acquiring) ? refusals.withLock { $0[asset] } : nil
    }

    func forget(_ asset: AssetID) { refusals.withLock { $0[asset] = nil } }

    func forgetAll() { refusals.withLock { $0.removeAll() } }
}
