/// The network addresses of upstream servers: their health, and the order in which new connections try them.
///
/// A server is identified by host and port. One failure makes an address suspect. New connections then try the other
/// addresses first, and a probe tests the address after a pause. A value without a clock: times are uptimes.
package struct AddressTable: Sendable {
    /// One address of a server.
    package struct Address: Hashable, Sendable {
        /// The address as text, without brackets.
        package let text: String
        /// Closed: the address is healthy; otherwise it is suspect.
        package fileprivate(set) var circuit = CircuitBreaker()
        package fileprivate(set) var failures = AddressFailures()
        /// The smoothed time in which a connection was established; nil: there was none.
        package fileprivate(set) var latency: Duration?
        /// The number of established connections.
        package fileprivate(set) var connections: Int64 = 0
        /// How often the address was the first in the order of a request.
        fileprivate var turns: Int64 = 0
        /// Connections that were established before this uptime are not reused; nil: all may be.
        fileprivate var distrustedAt: Duration?

        package init(_ text: String) { self.text = text }

        /// Whether the latest evidence about the address is a failure.
        package var isSuspect: Bool { circuit.state != .closed }

        fileprivate var isIPv6: Bool { text.contains(":") }
    }

    /// The state of one server.
    private struct Server {
        /// In the order of the resolver.
        var addresses: [Address] = []
        /// The uptime of the last resolution; nil: the name must be resolved again.
        var resolvedAt: Duration?
        var lastUse: Duration
        /// The uptime when a caller with another server to choose has last asked for the state; nil: never.
        var comparedAt: Duration?

        /// Whether its suspect addresses are probed. Without an alternative, the next request is the probe.
        func isProbed(at now: Duration) -> Bool {
            guard addresses.contains(where: \.isSuspect), now - lastUse < AddressTable.probedPeriod else {
                return false
            }
            return addresses.count > 1 || comparedAt.map { now - $0 < AddressTable.probedPeriod } ?? false
        }

        /// The uptime when the next probe is due; nil: none is needed.
        func nextProbe(at now: Duration) -> Duration? {
            isProbed(at: now) ? addresses.lazy.compactMap(\.probeDue).min() : nil
        }
    }

    /// One failure makes an address suspect. The pauses before the probes double from one second.
    private static let breaker = OriginSettings.CircuitBreaker(failures: 1, pause: .seconds(1))
    /// Addresses of servers without a use for this time are not probed.
    static let probedPeriod = Duration.seconds(600)

    private var servers: [String: Server] = [:]
    /// The maximum number of servers; beyond it, the servers with the oldest use are dropped.
    private let limit: Int

    package init(limit: Int = 1024) { self.limit = limit }

    // MARK: Names

    /// Records the addresses of a resolved name. Known addresses keep their state, others are dropped.
    package mutating func resolved(_ name: String, to texts: [String], at now: Duration) {
        change(name, at: now) { server in
            let known = server.addresses
            // A new address would otherwise be the first until it has as many turns as the others.
            let fewest = known.map(\.turns).min() ?? 0
            var seen: Set<String> = []
            server.addresses = texts.filter { seen.insert($0).inserted }.map { text in
                if let address = known.first(where: { $0.text == text }) { return address }
                var address = Address(text)
                address.turns = fewest
                return address
            }
            server.resolvedAt = now
        }
    }

    /// The addresses in the order in which a new connection tries them. Nil: the name must be resolved first, because
    /// its addresses are unknown or older than `maxAge` (nil: any age is permitted).
    ///
    /// 1. Healthy addresses of the resolver's preferred family, those with the fewest turns first.
    /// 2. Those of the other family, which the connection tries in parallel after a delay (RFC 8305).
    /// 3. Suspect addresses, the earliest failure first.
    package mutating func order(of name: String, notOlderThan maxAge: Duration?, at now: Duration) -> [String]? {
        guard let server = servers[name], !server.addresses.isEmpty else { return nil }
        if let maxAge {
            guard let resolvedAt = server.resolvedAt, now - resolvedAt <= maxAge else { return nil }
        }
        let healthy = server.addresses.filter { !$0.isSuspect }
        let suspect = server.addresses.filter(\.isSuspect)
            .sorted { ($0.failures.last?.at ?? .zero) < ($1.failures.last?.at ?? .zero) }
        let prefersIPv6 = healthy.first?.isIPv6 ?? false
        let families = [healthy.filter { $0.isIPv6 == prefersIPv6 }, healthy.filter { $0.isIPv6 != prefersIPv6 }]
        let ordered = families.flatMap { $0.sorted { $0.turns < $1.turns } } + suspect
        if let first = ordered.first { change(name, first.text, at: now) { $0.turns += 1 } }
        return ordered.map(\.text)
    }

    // MARK: Evidence

    /// A connection was established. It proves nothing about the server's responses.
    package mutating func connected(_ name: String, _ text: String, after latency: Duration, at now: Duration) {
        change(name, text, at: now) { address in
            address.connections += 1
            address.latency = address.latency.map { ($0 * 3 + latency) / 4 } ?? latency
        }
    }

    /// The address has answered a request.
    package mutating func succeeded(_ name: String, _ text: String, at now: Duration) {
        guard servers[name]?.addresses.first(where: { $0.text == text })?.isSuspect ?? true else { return }
        change(name, text, at: now) { $0.circuit.succeeded() }
    }

    /// The address did not accept a connection, or did not answer on one. Its name is resolved again before the next
    /// connection. After a timeout its connections so far are not reused.
    package mutating func failed(
        _ name: String, _ text: String, _ error: CacheError, isProbe: Bool = false, at now: Duration
    ) {
        change(name, text, at: now) { address in
            address.failures.note(error, at: now)
            address.circuit.failed(asProbe: isProbe, settings: Self.breaker, at: now, random: 0.5)
            if case .upstreamTimedOut = error.code { address.distrustedAt = now }
        }
        if !isProbe { servers[name]?.resolvedAt = nil }
    }

    /// A kept connection to the address is dead; new ones may work. Others of that age are not reused.
    package mutating func distrust(_ name: String, _ text: String, at now: Duration) {
        change(name, text, at: now) { $0.distrustedAt = now }
    }

    /// Whether a connection to the address that was established at `opened` may be reused. A suspect address is not used
    /// while another one is healthy.
    package func mayReuse(_ name: String, _ text: String, opened: Duration) -> Bool {
        let addresses = servers[name]?.addresses ?? []
        guard let address = addresses.first(where: { $0.text == text }) else { return true }
        if address.isSuspect, addresses.contains(where: { !$0.isSuspect }) { return false }
        return address.distrustedAt.map { opened > $0 } ?? true
    }

    /// Whether all addresses of the server are suspect. The caller prefers another server in that case, so that the
    /// addresses are probed.
    package mutating func isFailing(_ name: String, at now: Duration) -> Bool {
        guard var server = servers[name], !server.addresses.isEmpty else { return false }
        (server.lastUse, server.comparedAt) = (now, now)
        servers[name] = server
        return server.addresses.allSatisfy(\.isSuspect)
    }

    /// The known addresses of the server.
    package func addresses(of name: String) -> [Address] { servers[name]?.addresses ?? [] }

    // MARK: Probes

    /// The uptime when the next probe is due; nil: none is needed.
    package func nextProbe(at now: Duration) -> Duration? {
        servers.lazy.compactMap { $0.value.nextProbe(at: now) }.min()
    }

    /// The same for one server.
    package func nextProbe(of name: String, at now: Duration) -> Duration? { servers[name]?.nextProbe(at: now) }

    /// The suspect addresses whose pause is over. A probe of each is in flight until `succeeded` or `failed`.
    package mutating func dueProbes(at now: Duration) -> [(name: String, address: String)] {
        var due: [(name: String, address: String)] = []
        for (name, server) in servers where server.isProbed(at: now) {
            for index in server.addresses.indices {
                guard let time = server.addresses[index].probeDue, time <= now else { continue }
                _ = servers[name]?.addresses[index].circuit.admit(at: now)
                due.append((name, server.addresses[index].text))
            }
        }
        return due
    }

    // MARK: Parts

    /// Changes the state of a server; it may be new.
    private mutating func change(_ name: String, at now: Duration, _ body: (inout Server) -> Void) {
        if servers[name] == nil, servers.count >= limit {
            let oldest = servers.sorted { $0.value.lastUse < $1.value.lastUse }.prefix(max(1, limit / 4))
            for (name, _) in oldest { servers[name] = nil }
        }
        body(&servers[name, default: Server(lastUse: now)])
    }

    /// Changes the state of an address. A host that is an address itself was never resolved.
    private mutating func change(_ name: String, _ text: String, at now: Duration, _ body: (inout Address) -> Void) {
        change(name, at: now) { server in
            let known = server.addresses.firstIndex { $0.text == text }
            if known == nil { server.addresses.append(Address(text)) }
            body(&server.addresses[known ?? server.addresses.count - 1])
        }
    }

    /// A request to the server begins.
    package mutating func used(_ name: String, at now: Duration) {
        change(name, at: now) { $0.lastUse = now }
    }
}

extension AddressTable.Address {
    /// The uptime of the next probe; nil: none is due, or one is in flight.
    fileprivate var probeDue: Duration? {
        if case .open(let until) = circuit.state { until } else { nil }
    }
}

/// The health of one network address, as the API shows it.
package struct AddressFigures: Hashable, Sendable {
    package var address: String
    /// Whether the latest evidence is a failure.
    package var isSuspect: Bool
    package var connections: Int64
    /// The smoothed time in which a connection was established; nil: there was none.
    package var latency: Duration?
    package var failures: AddressFailures
    /// The time since the last failure; nil: there was none.
    package var sinceFailure: Duration?

    package init(_ address: AddressTable.Address, at now: Duration) {
        self.address = address.text
        isSuspect = address.isSuspect
        connections = address.connections
        latency = address.latency
        failures = address.failures
        sinceFailure = address.failures.last.map { now - $0.at }
    }
}
