/// Circuit breaker of one upstream address: stops requests after consecutive failures, then tests the address with
/// single probes (M. Nygard, "Release It!").
///
/// A value without a clock: times are uptimes, random numbers are in 0..<1.
package struct CircuitBreaker: Hashable, Sendable {
    /// The state of the circuit.
    package enum State: Hashable, Sendable {
        /// Requests are permitted.
        case closed
        /// No request is permitted before that uptime.
        case open(until: Duration)
        /// One probe is in flight; no other request is permitted.
        case halfOpen
    }

    /// The decision about one request.
    package enum Admission: Hashable, Sendable {
        /// The request may be sent.
        case admitted
        /// The request may be sent as the probe that tests the address.
        case probe
        /// The request is rejected until that uptime; nil: until the probe in flight has ended.
        case refused(until: Duration?)
    }

    /// The longest pause of an open circuit, jitter included. Items wait for its end; readers fail.
    static let longestPause = Duration.seconds(30)
    /// The random share of a pause, in both directions, so that clients do not return at the same time.
    static let jitter = 0.2

    package private(set) var state = State.closed
    /// The number of consecutive failures.
    package private(set) var failuresInARow = 0
    /// The uptime of the first of these failures; nil: there is none.
    package private(set) var failingSince: Duration?
    /// How often the circuit has opened, failed probes included.
    package private(set) var opensTotal: Int64 = 0
    /// The number of consecutive failed probes.
    private var failedProbes = 0

    package init() {}

    /// Decides whether a request may be sent at `now`. The caller must report the result with `succeeded`, `failed` or
    /// `abandoned`.
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

    /// Records that the address works, and closes the circuit.
    package mutating func succeeded() {
        state = .closed
        (failuresInARow, failingSince) = (0, nil)
        failedProbes = 0
    }

    /// Records that the address did not respond, or responded as a broken one does. A request from before the circuit
    /// opened does not extend the pause when it fails.
    package mutating func failed(
        asProbe isProbe: Bool, settings: OriginSettings.CircuitBreaker, at now: Duration, random: Double
    ) {
        failuresInARow += 1
        failingSince = failingSince ?? now
        switch state {
        case .closed:
            if failuresInARow >= settings.failures { open(settings, at: now, random: random) }
        case .halfOpen where isProbe:
            failedProbes += 1
            open(settings, at: now, random: random)
        case .open, .halfOpen: break
        }
    }

    /// Records a request that ended without a result. After a probe, the next request becomes the probe.
    package mutating func abandoned(asProbe isProbe: Bool, at now: Duration) {
        if isProbe, state == .halfOpen { state = .open(until: now) }
    }

    /// Opens the circuit. The pause doubles with each failed probe, with jitter, up to `longestPause`.
    private mutating func open(_ settings: OriginSettings.CircuitBreaker, at now: Duration, random: Double) {
        let pause = settings.pause * (1 << min(failedProbes, 20))
        let stray = 1 + Self.jitter * (2 * min(max(random, 0), 1) - 1)
        opensTotal += 1
        state = .open(until: now + min(Self.longestPause, pause * stray))
    }
}
