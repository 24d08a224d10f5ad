import CacheCore

/// The circuit state of one address of an origin.
package struct CircuitFigures: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable { case closed, open, halfOpen }

    /// The base URL; for absolute URLs scheme, host and port.
    package var address: String
    package var state: State
    package var failuresInARow = 0
    /// How often the circuit has opened, failed probes included.
    package var opensTotal: Int64 = 0
    /// The remaining time without requests; zero: the next request is the probe; nil: the circuit is not open.
    package var pause: Duration?
}

extension OriginHealth {
    /// The circuits of the origin's addresses: its base URL, then its mirrors. Empty if the circuit breaker is off.
    func circuits(of origin: Origin) -> [CircuitFigures] {
        guard origin.settings.circuitBreaker != nil else { return [] }
        let now = uptime()
        let known = look { $0[origin.name]?.circuits } ?? [:]
        return ([origin.settings.baseURL] + origin.settings.mirrors).map { base in
            CircuitFigures(base, known[base] ?? CircuitBreaker(), at: now)
        }
    }

    /// Servers of absolute URLs with recent failures, by descending number of failures in a row.
    func failingServers() -> [CircuitFigures] {
        let now = uptime()
        let named = look { parties in
            parties.filter { $0.key.hasPrefix(Origin.absoluteName) }.values.flatMap { $0.circuits.map { $0 } }
        }
        return named.map { CircuitFigures($0.key, $0.value, at: now) }
            .filter { $0.failuresInARow > 0 || $0.state != .closed }
            .sorted { ($1.failuresInARow, $0.address) < ($0.failuresInARow, $1.address) }
    }
}

extension CircuitFigures {
    fileprivate init(_ address: String, _ circuit: CircuitBreaker, at now: Duration) {
        let (state, pause): (State, Duration?) =
            switch circuit.state {
            case .closed: (.closed, nil)
            case .halfOpen: (.halfOpen, nil)
            case .open(let until): (.open, max(.zero, until - now))
            }
        self.init(
            address: address, state: state, failuresInARow: circuit.failuresInARow, opensTotal: circuit.opensTotal,
            pause: pause)
    }
}
