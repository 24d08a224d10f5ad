import CacheCore

/// The addresses of all upstream servers, shared by the workers of a pool. Thread-safe.
///
/// A server is identified by `host:port`.
final class UpstreamAddresses: Sendable {
    /// The parameters of the probes of one server: those of the last request that failed.
    struct ProbeRequest: Sendable {
        /// Without a query and without credentials.
        let url: String
        let tls: TLSSettings
        let timeouts: TransferTimeouts
        let permission: AddressPermission
    }

    private struct State {
        var table = AddressTable()
        /// Servers with failures.
        var probes: [String: ProbeRequest] = [:]
    }

    /// The maximum age of a resolved name.
    private let maxAge: Duration
    private let zero: Instant
    private let now: @Sendable () -> Instant
    /// Learns when probes are due.
    private let timers: TimerWake
    private let state = OrderedMutex(.leaf, State())
    private static let mostProbed = 1024

    init(maxAge: Duration, timers: TimerWake, now: @escaping @Sendable () -> Instant) {
        self.maxAge = maxAge
        self.timers = timers
        self.now = now
        zero = now()
    }

    private func change<Value: Sendable>(
        _ server: String, _ body: (inout State, Duration) -> Value
    ) -> Value {
        let time = zero.duration(to: now())
        let (value, due) = state.withLock { (body(&$0, time), $0.table.nextProbe(of: server, at: time)) }
        timers.schedule(due.map { zero + $0 })
        return value
    }

    /// The addresses for a new connection, in the order in which they are tried; nil: the name must be resolved first.
    /// `isResolved`: its age does not matter.
    func order(of server: String, isResolved: Bool) -> [String]? {
        change(server) { state, now in
            state.table.used(server, at: now)
            return state.table.order(of: server, notOlderThan: isResolved ? nil : maxAge, at: now)
        }
    }

    func resolved(_ server: String, to addresses: [String]) {
        change(server) { $0.table.resolved(server, to: addresses, at: $1) }
    }

    func connected(_ server: String, _ address: String, after latency: Duration) {
        change(server) { $0.table.connected(server, address, after: latency, at: $1) }
    }

    func succeeded(_ server: String, _ address: String) {
        change(server) { $0.table.succeeded(server, address, at: $1) }
    }

    /// Records a failure of the address. `probe`: the parameters of its probes.
    func failed(_ server: String, _ address: String, _ error: CacheError, probe: ProbeRequest) {
        change(server) { state, now in
            state.table.used(server, at: now)
            state.table.failed(server, address, error, at: now)
            if state.probes.count >= Self.mostProbed {
                let table = state.table
                state.probes = state.probes.filter { table.addresses(of: $0.key).contains(where: \.isSuspect) }
            }
            state.probes[server] = probe
        }
    }

    /// Records the result of a probe; `error` nil: the address has answered.
    func probed(_ server: String, _ address: String, _ error: CacheError?) {
        change(server) { state, now in
            guard let error else { return state.table.succeeded(server, address, at: now) }
            state.table.failed(server, address, error, isProbe: true, at: now)
        }
    }

    func distrust(_ server: String, _ address: String) {
        change(server) { $0.table.distrust(server, address, at: $1) }
    }

    /// Whether a connection that was established at `opened` (nil: unknown) may be reused.
    func mayReuse(_ server: String, _ address: String, opened: Instant?) -> Bool {
        let age = opened.map { zero.duration(to: $0) } ?? .zero
        return state.withLock { $0.table.mayReuse(server, address, opened: age) }
    }

    func isFailing(_ server: String) -> Bool { change(server) { $0.table.isFailing(server, at: $1) } }

    /// The health of the known addresses.
    func figures(of server: String) -> [AddressFigures] {
        let time = zero.duration(to: now())
        return state.withLock { $0.table.addresses(of: server) }.map { AddressFigures($0, at: time) }
    }

    /// The time of the next probe; nil: none is needed.
    var nextProbe: Instant? {
        let time = zero.duration(to: now())
        return state.withLock { $0.table.nextProbe(at: time) }.map { zero + $0 }
    }

    /// The probes that are due now.
    func dueProbes() -> [(server: String, address: String, request: ProbeRequest)] {
        let time = zero.duration(to: now())
        return state.withLock { state in
            state.table.dueProbes(at: time).compactMap { name, address in
                guard let request = state.probes[name] else { return nil }
                return (name, address, request)
            }
        }
    }
}
