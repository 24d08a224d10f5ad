import CacheCore
import CacheEngine
import Synchronization

/// Limits the connections that are served at once, and reserves a few more for requests under `/health/`.
///
/// A connection above the limit gets a reserved permit while it waits for its request. If all reserved permits are in use,
/// a new connection takes the permit of the one that has waited longest. Silent connections therefore never keep a health
/// check out.
final class ConnectionPermits: Sendable {
    /// The right of one connection to be served; it ends when it is given back, or with the last reference.
    final class Permit: Sendable {
        private let permits: ConnectionPermits
        /// Nil for a regular permit.
        private let reservation: UInt64?
        private let isOver = Atomic(false)

        fileprivate init(_ permits: ConnectionPermits, reservation: UInt64? = nil) {
            self.permits = permits
            self.reservation = reservation
        }

        /// Whether the permit is for one health request only.
        var isReserved: Bool { reservation != nil }

        /// Keeps a reserved permit for the request that came; false if another connection has it by now.
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

        func giveBack() {
            if !isOver.exchange(true, ordering: .relaxed) { permits.giveBack(reservation) }
        }

        deinit { giveBack() }
    }

    private struct State {
        var active = 0
        var refused = 0
        var lastReservation: UInt64 = 0
        /// Connections with a reserved permit and no request yet, the oldest first.
        var waiting: [(reservation: UInt64, displaced: @Sendable () -> Void)] = []
        var serving: Set<UInt64> = []
    }

    /// The answer to a connection without a permit.
    static let refusal = CacheError(
        .overloaded, "The limit on connections is reached; raise limits.connections or try again later.")

    let limit: Int
    let reserve: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
        reserve = min(64, max(2, limit / 2))
    }

    /// The most connections that are accepted at once; rejected ones that are being closed count.
    var acceptLimit: Int { limit + reserve + limit / 8 + 8 }

    var figures: CounterFigures.Places {
        state.withLock { CounterFigures.Places(active: $0.active, limit: limit, refused: $0.refused) }
    }

    /// A permit for a new connection; nil if even the reserved ones are all in use by requests. `displaced` is called if
    /// another connection takes a reserved permit over.
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

    /// Counts a connection that was answered 503.
    func countRefusal() { state.withLock { $0.refused += 1 } }

    private func giveBack(_ reservation: UInt64?) {
        state.withLock { state in
            guard let reservation else { return state.active -= 1 }
            state.serving.remove(reservation)
            state.waiting.removeAll { $0.reservation == reservation }
        }
    }
}
