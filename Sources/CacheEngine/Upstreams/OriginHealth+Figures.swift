package import CacheCore

/// The circuit state of one address of an origin.
package struct CircuitFigures: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable { case closed, open, halfOpen }

    /// The base URL; for absolute URLs scheme, host and port.
    package var address: String
    package var state: State
    package var failuresInARow = 0
    /// The time since the first of these failures; nil: there is none.
    package var failing: Duration?
    /// How often the circuit has opened, failed probes included.
    package var opensTotal: Int64 = 0
    /// The remaining time without requests; zero: the next request is the probe; nil: the circuit is not open.
    package var pause: Duration?
    /// The failures of the address since the start.
    package var failures = AddressFailures()
    /// The time since the last failure; nil: there was none.
    package var sinceFailure: Duration?
    /// The network addresses of its server, as far as they are known.
    package var resolved: [AddressFigures] = []
}

extension OriginHealth {
    /// The origin's addresses: its base URL, then its mirrors. Without a circuit breaker their circuits are closed.
    func circuits(of origin: Origin) -> [CircuitFigures] {
        let now = uptime()
        let party = look { $0[origin.name] } ?? Party()
        return ([origin.settings.baseURL] + origin.settings.mirrors).map { CircuitFigures($0, party, at: now) }
    }

    /// Servers of absolute URLs with recent failures, by descending number of failures in a row.
    func failingServers() -> [CircuitFigures] {
        let now = uptime()
        let named = look { parties in
            parties.filter { $0.key.hasPrefix(Origin.absoluteName) }.values.flatMap { party in
                party.circuits.keys.map { CircuitFigures($0, party, at: now) }
            }
        }
        return named.filter { $0.failuresInARow > 0 || $0.state != .closed }
            .sorted { ($1.failuresInARow, $0.address) < ($0.failuresInARow, $1.address) }
    }
}

extension CircuitFigures {
    fileprivate init(_ address: String, _ party: OriginHealth.Party, at now: Duration) {
        let circuit = party.circuits[address] ?? CircuitBreaker()
        let (state, pause): (State, Duration?) =
            switch circuit.state {
            case .closed: (.closed, nil)
            case .halfOpen: (.halfOpen, nil)
            case .open(let until): (.open, max(.zero, until - now))
            }
        let failures = party.failures[address] ?? AddressFailures()
        self.init(
            address: address, state: state, failuresInARow: circuit.failuresInARow,
            failing: circuit.failingSince.map { now - $0 }, opensTotal: circuit.opensTotal, pause: pause,
            failures: failures, sinceFailure: failures.last.map { now - $0.at })
    }
}
