/// Leaves an address alone that keeps failing, and tries it again now and then (M. Nygard, Release It!, "Circuit Breaker").
///
/// A value without a clock: times are uptimes, chances are numbers in 0..<1.
package struct CircuitBreaker: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// It may be asked.
        case closed
        /// It is not asked before that uptime.
        case open(until: Duration)
        /// One request is under way to see whether it is well again; nothing else is asked.
        case halfOpen
    }

    /// Whether a request may be sent.
    package enum Admission: Hashable, Sendable {
        case admitted
        /// As the one request that finds out.
        case probe
        /// Nil as the time: a probe is under way.
        case refused(until: Duration?)
    }

    /// The longest that an address is left alone at once, before jitter.
    package static let longestPause = Duration.seconds(60)
    /// How far a pause strays, so that not everybody comes back at once.
    package static let jitter = 0.2

    package private(set) var state = State.closed
    package private(set) var failuresInARow = 0
    /// How often it has opened, failed probes included.
    package private(set) var opensTotal: Int64 = 0
    /// Probes that failed in a row.
    private var failedProbes = 0

    package init() {}

    /// Asks for leave to send a request at `now`; whoever gets it says how that went.
    package mutating func admit(at now: Duration) -> Admission {
        switch state {
        case .closed: return .admitted
        case .open(let until) where now < until: return .refused(until: until)
        case .open:
            state = .halfOpen
            return .probe
        case .halfOpen: return .refused(until: nil)
        }
    }

    /// The address has answered well, or at all.
    package mutating func succeeded() {
        state = .closed
        failuresInARow = 0
        failedProbes = 0
    }

    /// The address did not answer, or as a broken one does. What was asked before the circuit opened, and fails later,
    /// does not keep it open for longer.
    package mutating func failed(
        asProbe isProbe: Bool, settings: OriginSettings.CircuitBreaker, at now: Duration, chance: Double
    ) {
        failuresInARow += 1
        switch state {
        case .closed:
            if failuresInARow >= settings.failures { open(settings, at: now, chance: chance) }
        case .halfOpen where isProbe:
            failedProbes += 1
            open(settings, at: now, chance: chance)
        case .open, .halfOpen: break
        }
    }

    /// The request ended without showing anything; after a probe the next one finds out.
    package mutating func abandoned(asProbe isProbe: Bool, at now: Duration) {
        if isProbe, state == .halfOpen { state = .open(until: now) }
    }

    private mutating func open(_ settings: OriginSettings.CircuitBreaker, at now: Duration, chance: Double) {
        let pause = min(Self.longestPause, settings.pause * (1 << min(failedProbes, 20)))
        let stray = 1 + Self.jitter * (2 * min(max(chance, 0), 1) - 1)
        opensTotal += 1
        state = .open(until: now + pause * stray)
    }
}
