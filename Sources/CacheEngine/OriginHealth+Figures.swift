import CacheCore

/// How one address of an origin stands.
package struct CircuitFigures: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, CaseIterable { case closed, open, halfOpen }

    /// The base URL.
    package var address: String
    package var state: State
    package var failuresInARow: Int
    package var opensTotal: Int64
    /// For how long it is still left alone; nil where it is not.
    package var pause: Duration?
}

extension OriginHealth {
    /// How the origin's addresses stand: its base URL, then its mirrors.
    func circuits(of origin: Origin) -> [CircuitFigures] {
        let now = uptime()
        let known = look { $0[origin.name]?.circuits } ?? [:]
        return ([origin.settings.baseURL] + origin.settings.mirrors).map { base in
            CircuitFigures(base, known[base] ?? CircuitBreaker(), at: now)
        }
    }

    /// The servers that absolute URLs lead to and that have failed lately, by name.
    func failingServers() -> [CircuitFigures] {
        let now = uptime()
        let named = look { parties in
            parties.filter { $0.key.hasPrefix(Origin.absoluteName) }.values.flatMap { $0.circuits.map { $0 } }
        }
        return named.map { CircuitFigures($0.key, $0.value, at: now) }
            .filter { $0.failuresInARow > 0 || $0.state != .closed }.sorted { $0.address < $1.address }
    }
}

extension CircuitFigures {
    fileprivate init(_ address: String, _ circuit: CircuitBreaker, at now: Duration) {
        self.address = address
        failuresInARow = circuit.failuresInARow
        opensTotal = circuit.opensTotal
        switch circuit.state {
        case .closed: state = .closed
        case .halfOpen: state = .halfOpen
        case .open(let until):
            state = .open
            pause = max(.zero, until - now)
        }
    }
}
