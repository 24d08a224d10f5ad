import CacheCore

/// How one address of an origin stands.
package struct CircuitFigures: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable { case closed, open, halfOpen }

    /// The base URL; of absolute URLs scheme, host and port.
    package var address: String
    package var state: State
    package var failuresInARow: Int
    package var opensTotal: Int64
    /// For how long it is still left alone; zero where the next request finds out, nil where it is not open.
    package var pause: Duration?

    package init(
        address: String, state: State, failuresInARow: Int = 0, opensTotal: Int64 = 0, pause: Duration? = nil
    ) {
        self.address = address
        self.state = state
        self.failuresInARow = failuresInARow
        self.opensTotal = opensTotal
        self.pause = pause
    }
}

extension OriginHealth {
    /// How the origin's addresses stand: its base URL, then its mirrors. None where its circuit breaker is off.
    func circuits(of origin: Origin) -> [CircuitFigures] {
        guard origin.settings.circuitBreaker != nil else { return [] }
        let now = uptime()
        let known = look { $0[origin.name]?.circuits } ?? [:]
        return ([origin.settings.baseURL] + origin.settings.mirrors).map { base in
            CircuitFigures(base, known[base] ?? CircuitBreaker(), at: now)
        }
    }

    /// The servers that absolute URLs lead to and that have failed lately, those that failed most often first.
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
