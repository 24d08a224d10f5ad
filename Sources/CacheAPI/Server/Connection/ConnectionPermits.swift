import CacheCore
import CacheEngine
import Synchronization

/// Admission control for connections. Idle connections give way to requests, and health checks have a reserve.
///
/// A connection above the limit gets a reserved permit while it waits for its first request. If all reserved permits are
/// in use, a new connection takes the permit of the one that has waited longest. The first request decides:
/// - A request under `/health/` keeps the reserved permit, for this request only.
/// - Any other request gets a regular permit: a free one, or the one of the connection that has been idle longest. If no
///   connection is idle, the request gets 503.
///
/// A request and a displacement can race for one permit. The lock decides:
/// 1. The request arrives first: ``Permit/begin(isHealthCheck:)`` makes the connection busy. Busy connections are never
///    displaced.
/// 2. The displacement comes first: `begin` returns false, and the request gets 503.
final class ConnectionPermits: Sendable {
    /// The right of one connection to be served; ends with ``giveBack()`` or with the last reference.
    final class Permit: Sendable {
        private let permits: ConnectionPermits
        private let slot: Int
        /// Set by the first ``giveBack()``.
        private let isOver = Atomic(false)

        fileprivate init(_ permits: ConnectionPermits, slot: Int) {
            self.permits = permits
            self.slot = slot
        }

        /// Whether the permit is reserved: the connection has sent no request, or a health check only.
        var isReserved: Bool { permits.state.withLock { $0.isReserved(slot) } }

        /// Makes the connection busy with a request, until ``rest()``. Returns false if the connection was displaced, or
        /// has a reserved permit and none is available for this request.
        func begin(isHealthCheck: Bool) -> Bool {
            let (isAdmitted, displaced) = permits.state.withLock {
                $0.begin(slot, isHealthCheck: isHealthCheck, limit: permits.limit)
            }
            displaced?()
            return isAdmitted
        }

        /// Makes the connection idle: another connection may take its permit.
        func rest() { permits.state.withLock { $0.rest(slot) } }

        /// Returns the permit. Further calls have no effect.
        func giveBack() {
            if !isOver.exchange(true, ordering: .relaxed) { permits.state.withLock { $0.remove(slot) } }
        }

        deinit { giveBack() }
    }

    /// The error for a connection without a permit.
    static let refusal = CacheError(
        .overloaded, "The limit on connections is reached; raise limits.maxConnections or try again later.")

    /// The number of regular permits.
    let limit: Int
    /// The number of reserved permits: a quarter of `limit`, but at least 2 and at most 512.
    let reserve: Int
    /// Guards the permits in use and the count of rejections.
    private let state = OrderedMutex(.leaf, ConnectionTable())

    init(limit: Int) {
        self.limit = limit
        reserve = min(512, max(2, limit / 4))
    }

    /// The maximum number of open connections, including rejected ones that are not closed yet. At this limit the
    /// server stops accepting; further connections wait in the kernel's backlog.
    var acceptLimit: Int { limit + reserve + limit / 8 + 8 }

    /// The current use, for statistics.
    var figures: AdmissionStats.Load {
        state.withLock { AdmissionStats.Load(active: $0.active, limit: limit, refused: $0.refused) }
    }

    /// Returns a permit for a new connection; nil if all regular permits are in use and all reserved ones serve health
    /// checks.
    ///
    /// `displaced` is called if another connection takes over this connection's permit. It is called without the lock,
    /// on the thread of the other connection.
    func take(displaced: @escaping @Sendable () -> Void) -> Permit? {
        let (slot, former) = state.withLock { $0.insert(limit: limit, reserve: reserve, displaced) }
        former?()
        return slot.map { Permit(self, slot: $0) }
    }

    /// The numbers of connections with and without a request in progress.
    var counts: (busy: Int, quiet: Int) { state.withLock { $0.counts } }

    /// Counts a connection that gets 503.
    func countRefusal() { state.withLock { $0.refused += 1 } }

    /// Whether a request target may use a reserved permit. Health checks must work under overload.
    static func isHealthCheck(_ target: String) -> Bool { target.hasPrefix("/health/") }
}

/// Pure state of all permits: the phase of each connection, and the idle ones in the order of their last use.
private struct ConnectionTable: Sendable {
    /// What a connection does with its permit.
    enum Phase {
        /// Reserved: the first request has not arrived.
        case waiting
        /// Reserved: a health check is in progress.
        case checking
        /// Regular: no request is in progress.
        case idle
        /// Regular: a request is in progress.
        case busy
        /// Another connection has the permit.
        case displaced
        /// No connection has this slot.
        case free
    }

    /// The lists of `order`.
    private enum List: Int, CaseIterable { case waiting, idle }

    /// The phase of the connection in each slot.
    private var phases: [Phase] = []
    private var callbacks: [(@Sendable () -> Void)?] = []
    private var freeSlots: [Int] = []
    /// The waiting connections and the idle ones, each the oldest first.
    private var order = IndexList(lines: List.allCases.count)
    /// Regular permits in use.
    private(set) var active = 0
    /// Reserved permits in use.
    private var reserved = 0
    /// Rejected connections since the start.
    var refused = 0

    var counts: (busy: Int, quiet: Int) {
        phases.reduce(into: (0, 0)) { counts, phase in
            switch phase {
            case .busy, .checking: counts.busy += 1
            case .idle, .waiting: counts.quiet += 1
            case .displaced, .free: break
            }
        }
    }

    func isReserved(_ slot: Int) -> Bool {
        switch phases[slot] {
        case .waiting, .checking: true
        case .idle, .busy, .displaced, .free: false
        }
    }

    /// Adds a connection. Returns its slot, nil without a permit, and the callback of the connection that it displaces.
    mutating func insert(
        limit: Int, reserve: Int, _ displaced: @escaping @Sendable () -> Void
    ) -> (slot: Int?, former: (@Sendable () -> Void)?) {
        var former: (@Sendable () -> Void)?
        if active >= limit, reserved >= reserve {
            guard let oldest = order.first(of: List.waiting.rawValue) else { return (nil, nil) }
            former = displace(oldest)
        }
        let slot = freeSlots.popLast() ?? phases.count
        if slot == phases.count {
            phases.append(.free)
            callbacks.append(nil)
        }
        callbacks[slot] = displaced
        enter(slot, active < limit ? .idle : .waiting)
        return (slot, former)
    }

    /// Begins a request. Returns whether it is admitted, and the callback of the connection that it displaces.
    mutating func begin(
        _ slot: Int, isHealthCheck: Bool, limit: Int
    ) -> (isAdmitted: Bool, former: (@Sendable () -> Void)?) {
        switch phases[slot] {
        case .idle, .busy: enter(slot, .busy)
        case .waiting where isHealthCheck: enter(slot, .checking)
        case .waiting:
            var former: (@Sendable () -> Void)?
            if active >= limit {
                guard let oldest = order.first(of: List.idle.rawValue) else { return (false, nil) }
                former = displace(oldest)
            }
            enter(slot, .busy)
            return (true, former)
        case .checking, .displaced, .free: return (false, nil)
        }
        return (true, nil)
    }

    mutating func rest(_ slot: Int) { if phases[slot] == .busy { enter(slot, .idle) } }

    mutating func remove(_ slot: Int) {
        enter(slot, .free)
        callbacks[slot] = nil
        freeSlots.append(slot)
    }

    private mutating func displace(_ slot: Int) -> (@Sendable () -> Void)? {
        enter(slot, .displaced)
        return callbacks[slot]
    }

    /// Changes the phase of a connection, and its place in the counts and lists.
    private mutating func enter(_ slot: Int, _ phase: Phase) {
        count(phases[slot], -1)
        phases[slot] = phase
        count(phase, 1)
        switch phase {
        case .waiting: order.append(slot, to: List.waiting.rawValue)
        case .idle: order.append(slot, to: List.idle.rawValue)
        case .checking, .busy, .displaced, .free: order.remove(slot)
        }
    }

    private mutating func count(_ phase: Phase, _ change: Int) {
        switch phase {
        case .waiting, .checking: reserved += change
        case .idle, .busy: active += change
        case .displaced, .free: break
        }
    }
}
