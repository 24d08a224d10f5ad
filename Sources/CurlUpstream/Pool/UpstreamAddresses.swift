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
    private let state = OrderedMutex(.leaf, State())
    private static let mostProbed = 1024

    init(maxAge: Duration, now: @escaping @Sendable () -> Instant) {
        self.maxAge = maxAge
        self.now = now
        zero = now()
    }

    private func change<Value: Sendable>(_ body: (inout AddressTable, Duration) -> Value) -> Value {
        let time = zero.duration(to: now())
        return state.withLock { body(&$0.table, time) }
    }

    /// The addresses for a new connection, in the order in which they are tried; nil: the name must be resolved first.
    /// `isResolved`: its age does not matter.
    func order(of server: String, isResolved: Bool) -> [String]? {
        change { table, now in
            table.used(server, at: now)
            return table.order(of: server, notOlderThan: isResolved ? nil : maxAge, at: now)
        }
    }

    func resolved(_ server: String, to addresses: [String]) {
        change { $0.resolved(server, to: addresses, at: $1) }
    }

    func connected(_ server: String, _ address: String, after latency: Duration) {
        change { $0.connected(server, address, after: latency, at: $1) }
    }

    func succeeded(_ server: String, _ address: String) { change { $0.succeeded(server, address, at: $1) } }

    /// Records a failure of the address. `probe`: the parameters of its probes.
    func failed(_ server: String, _ address: String, _ error: CacheError, probe: ProbeRequest) {
        let time = zero.duration(to: now())
        state.withLock { state in
            state.table.used(server, at: time)
            state.table.failed(server, address, error, at: time)
            if state.probes.count >= Self.mostProbed {
                let table = state.table
                state.probes = state.probes.filter { table.addresses(of: $0.key).contains(where: \.isSuspect) }
            }
            state.probes[server] = probe
        }
    }

    /// Records the result of a probe; `error` nil: the address has answered.
    func probed(_ server: String, _ address: String, _ error: CacheError?) {
        change { table, now in
            guard let error else { return table.succeeded(server, address, at: now) }
            table.failed(server, address, error, isProbe: true, at: now)
        }
    }

    func distrust(_ server: String, _ address: String) { change { $0.distrust(server, address, at: $1) } }

    /// Whether a connection that was established at `opened` (nil: unknown) may be reused.
    func mayReuse(_ server: String, _ address: String, opened: Instant?) -> Bool {
        let age = opened.map { zero.duration(to: $0) } ?? .zero
        return change { table, _ in table.mayReuse(server, address, opened: age) }
    }

    func isFailing(_ server: String) -> Bool { change { $0.isFailing(server, at: $1) } }

    /// The health of the known addresses.
    func figures(of server: String) -> [AddressFigures] {
        change { table, now in table.addresses(of: server).map { AddressFigures($0, at: now) } }
    }

    /// The time of the next probe; nil: none is needed.
    var nextProbe: Instant? {
        change { $0.nextProbe(at: $1) }.map { zero + $0 }
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
