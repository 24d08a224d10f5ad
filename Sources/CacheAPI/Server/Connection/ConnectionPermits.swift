import CacheCore
import CacheEngine
import Synchronization

/// Admission control for connections, with a few reserved permits for requests under `/health/`.
///
/// A connection above the limit gets a reserved permit while it waits for its request. If all reserved permits are in
/// use, a new connection takes the permit of the one that has waited longest. Silent connections therefore never block
/// a health check.
///
/// A request and a displacement can race for one reserved permit. The lock decides:
/// 1. The request arrives first: `claim()` moves the permit from `waiting` to `serving`, which is never displaced.
/// 2. The displacement comes first: the permit has left `waiting`, `claim()` returns false, and the request gets 503.
final class ConnectionPermits: Sendable {
    /// The right of one connection to be served; ends with ``giveBack()`` or with the last reference.
    final class Permit: Sendable {
        private let permits: ConnectionPermits
        /// The number of a reserved permit; nil for a regular permit.
        private let reservation: UInt64?
        /// Set by the first ``giveBack()``.
        private let isOver = Atomic(false)

        fileprivate init(_ permits: ConnectionPermits, reservation: UInt64? = nil) {
            self.permits = permits
            self.reservation = reservation
        }

        /// Whether the permit is for one health request only.
        var isReserved: Bool { reservation != nil }

        /// Keeps a reserved permit for a received health request. Returns false if another connection has displaced it.
        /// Always true for a regular permit.
        func claim() -> Bool {
            guard let reservation else { return true }
            return permits.state.withLock { state in
                guard let index = state.waiting.firstIndex(where: { $0.reservation == reservation }) else {
                    return false
                }
                state.waiting.remove(at: index)
                state.serving.insert(reservation)
                return true
            }
        }

        /// Returns the permit. Further calls have no effect.
        func giveBack() {
            if !isOver.exchange(true, ordering: .relaxed) { permits.giveBack(reservation) }
        }

        deinit { giveBack() }
    }

    private struct State {
        /// Regular permits in use.
        var active = 0
        /// Rejected connections since the start.
        var refused = 0
        /// The last number given to a reserved permit.
        var lastReservation: UInt64 = 0
        /// Connections with a reserved permit and no request yet, the oldest first.
        var waiting: [(reservation: UInt64, displaced: @Sendable () -> Void)] = []
        /// Reserved permits that a health request has claimed.
        var serving: Set<UInt64> = []
    }

    /// The error for a connection without a permit.
    static let refusal = CacheError(
        .overloaded, "The limit on connections is reached; raise limits.maxConnections or try again later.")

    /// The number of regular permits.
    let limit: Int
    /// The number of reserved permits: half of `limit`, but at least 2 and at most 64.
    let reserve: Int
    /// Guards the permits in use and the count of rejections.
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
        reserve = min(64, max(2, limit / 2))
    }

    /// The maximum number of open connections, including rejected ones that are not closed yet. At this limit the
    /// server stops accepting; further connections wait in the kernel's backlog.
    var acceptLimit: Int { limit + reserve + limit / 8 + 8 }

    /// The current use, for statistics.
    var figures: AdmissionStats.Load {
        state.withLock { AdmissionStats.Load(active: $0.active, limit: limit, refused: $0.refused) }
    }

    /// Returns a permit for a new connection; nil if all regular and reserved permits serve requests.
    ///
    /// `displaced` is called if another connection takes over this connection's reserved permit. It is called without
    /// the lock, on the thread of the new connection.
    func take(displaced: @escaping @Sendable () -> Void) -> Permit? {
        let (permit, former) = state.withLock { state -> (Permit?, (@Sendable () -> Void)?) in
            if state.active < limit {
                state.active += 1
                return (Permit(self), nil)
            }
            var former: (@Sendable () -> Void)?
            if state.waiting.count + state.serving.count >= reserve {
                guard !state.waiting.isEmpty else { return (nil, nil) }
                former = state.waiting.removeFirst().displaced
            }
            state.lastReservation += 1
            state.waiting.append((state.lastReservation, displaced))
            return (Permit(self, reservation: state.lastReservation), former)
        }
        former?()
        return permit
    }

    /// Counts a connection that gets 503.
    func countRefusal() { state.withLock { $0.refused += 1 } }

    /// Returns a regular permit (nil) or a reserved one, which may have been displaced already.
    private func giveBack(_ reservation: UInt64?) {
        state.withLock { state in
            guard let reservation else { return state.active -= 1 }
            state.serving.remove(reservation)
            state.waiting.removeAll { $0.reservation == reservation }
        }
    }
}
