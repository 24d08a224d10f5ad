import CacheCore
import Logging

/// Recent health of the origins' addresses. It decides which address may be asked, whether a request may be retried,
/// and when a hedge is worthwhile.
///
/// State is stored by origin name. Absolute URLs are distinguished by scheme, host and port, so that one dead host does
/// not block the others.
final class OriginHealth: Sendable {
    /// The right to send one request. Its holder reports the result once, with `settle`.
    struct Permit: Hashable, Sendable {
        /// The key of the origin's health state.
        let party: String
        /// The index in the origin's list of addresses: 0 is its base URL, its mirrors follow.
        let address: Int
        /// The base URL that identifies the circuit.
        let base: String
        /// Whether the request is the single probe of an open circuit.
        let isProbe: Bool
    }

    /// The evidence about an address that a request gives.
    enum Evidence: Sendable {
        /// The address works.
        case well
        /// The address does not answer, or answers like a failing server, with this error.
        case broken(CacheError)
        /// The request gives no evidence.
        case nothing

        /// The evidence of a response: only the statuses of a failing server count as broken.
        init(status: Int) {
            let error = CacheError(
                .upstreamRefused(status: status, retryAfter: nil), "The upstream answered with status \(status).")
            self = CacheError.Code.isOfFailingServer(status) ? .broken(error) : .well
        }
    }

    /// The health state of one origin, or of one server of absolute URLs.
    struct Party: Sendable {
        /// Circuits by base URL.
        var circuits: [String: CircuitBreaker] = [:]
        /// Failures by base URL, also without a circuit breaker.
        var failures: [String: AddressFailures] = [:]
        var budget = RetryBudget()
        var latencies = LatencyGauge()
        /// The uptime of the last change.
        var lastUse = Duration.zero
        /// The uptime of the last log message about its mirrors; nil: none yet.
        var lastComplaint: Duration?
        var observations = ObservationTable()

        /// Whether all circuits are closed.
        var isWell: Bool { circuits.values.allSatisfy { $0.state == .closed } }
    }

    let uptime: @Sendable () -> Duration
    private let random: any RandomSource
    private let logger: Logger
    private let events: EventLog?
    /// The maximum number of remembered parties. Beyond it, healthy parties with the oldest use are dropped first.
    private let limit: Int
    /// Guards the health states, by the key of the party.
    private let parties = OrderedMutex<[String: Party]>(.leaf, [:])

    init(
        uptime: @escaping @Sendable () -> Duration, random: any RandomSource, logger: Logger, events: EventLog? = nil,
        limit: Int = 1024
    ) {
        self.uptime = uptime
        self.random = random
        self.logger = logger
        self.events = events
        self.limit = limit
    }

    // MARK: Admission

    /// Returns a permit for the first admissible of the target's first `count` addresses. The search starts at `first`,
    /// wraps around, tries those in `failing` last, and omits those in `skipped`. With `mayProbe`, an address with an
    /// expired pause is admissible as a probe.
    ///
    /// Throws `.upstreamUnreachable` if no address is admissible.
    func admit(
        _ target: AssetTarget, of count: Int = 1, from first: Int = 0, without skipped: Set<Int> = [],
        failing: Set<Int> = [], mayProbe: Bool = true
    ) throws(CacheError) -> Permit {
        let turn = (0..<count).map { (first + $0) % count }.filter { !skipped.contains($0) }
        let places = turn.filter { !failing.contains($0) } + turn.filter(failing.contains)
        let now = uptime()
        let (permit, refusal) = change(target, at: now) { $0.admit(target, to: places, mayProbe: mayProbe, at: now) }
        guard let permit else { throw refusal.error(at: now) }
        return permit
    }

    /// Predicts the result of `admit` without a permit: the address that a request would use now, nil if there is none;
    /// and the reason against the first address, nil if that one is used.
    func foresee(_ target: AssetTarget, of count: Int) -> (address: Int?, whyNot: CacheError?) {
        let now = uptime()
        var party = look { $0[target.party] } ?? Party()
        let (permit, refusal) = party.admit(target, to: Array(0..<count), mayProbe: true, at: now)
        return (permit?.address, permit?.address == 0 ? nil : refusal.error(at: now))
    }

    /// Renews the permit of a request that has waited in a queue and is now sent; it may become the permit of a probe.
    /// Throws `.upstreamUnreachable` if the address is no longer admissible.
    func readmit(_ permit: Permit, of target: AssetTarget) throws(CacheError) -> Permit {
        guard !permit.isProbe else { return permit }
        return try admit(target, of: permit.address + 1, without: Set(0..<permit.address))
    }

    /// Records the evidence that a request gave about its address.
    func settle(_ permit: Permit, _ evidence: Evidence, by settings: OriginSettings.CircuitBreaker?) {
        let now = uptime()
        let cause: CacheError? = if case .broken(let error) = evidence { error } else { nil }
        let random = cause == nil ? 0 : self.random.uniform()
        let (before, after) = parties.withLock { parties -> (CircuitBreaker, CircuitBreaker) in
            if let cause {
                parties[permit.party]?.failures[permit.base, default: AddressFailures()].note(cause, at: now)
                // The endpoint of the region may be at fault: the origin is asked again.
                parties[permit.party]?.observations.forget(.regionStated, .origin)
            }
            let before = parties[permit.party]?.circuits[permit.base] ?? CircuitBreaker()
            var circuit = before
            switch evidence {
            case .well: circuit.succeeded()
            case .nothing: circuit.abandoned(asProbe: permit.isProbe, at: now)
            case .broken:
                guard let settings else { return (before, before) }
                circuit.failed(asProbe: permit.isProbe, settings: settings, at: now, random: random)
            }
            if circuit != before { parties[permit.party]?.circuits[permit.base] = circuit }
            return (before, circuit)
        }
        log(permit, before, after, cause, at: now)
        guard before.state == .closed, case .open(let until) = after.state else { return }
        events?.publish(
            .circuitOpened(
                CircuitEvent(
                    origin: permit.party.hasPrefix(Origin.absoluteName) ? nil : permit.party, address: permit.base,
                    failuresInARow: after.failuresInARow, pause: until - now, error: cause?.message ?? "")))
    }

    /// The time until a request to one of the target's first `count` addresses is permitted; nil: it is now.
    func pause(of target: AssetTarget, of count: Int) -> Duration? {
        let (address, refusal) = foresee(target, of: count)
        guard address == nil, case .upstreamUnreachable(let pause) = refusal?.code else { return nil }
        return pause
    }

    /// The best state of the circuits of a party: of these addresses, otherwise of all that are known.
    func circuit(of party: String, at addresses: [String]?) -> CircuitBreaker.State {
        let circuits = look { $0[party]?.circuits ?? [:] }
        let states = (addresses ?? Array(circuits.keys)).map { circuits[$0]?.state ?? .closed }
        if states.isEmpty || states.contains(.closed) { return .closed }
        let ends = states.compactMap { if case .open(let until) = $0 { until } else { nil } }
        return ends.min().map { .open(until: $0) } ?? .halfOpen
    }

    /// Whether the retry budget of the target's origin is exhausted.
    func isBudgetExhausted(of target: AssetTarget) -> Bool {
        let now = uptime()
        return look { $0[target.party].map { !$0.budget.allows(at: now) } ?? false }
    }

    /// Closes the circuits of a mounted origin.
    func closeCircuits(of origin: String) {
        parties.withLock { $0[origin]?.circuits = [:] }
    }

    /// Logs that a circuit has opened or closed.
    private func log(
        _ permit: Permit, _ before: CircuitBreaker, _ after: CircuitBreaker, _ cause: CacheError?, at now: Duration
    ) {
        let metadata: Logger.Metadata = ["origin": "\(permit.party)", "address": "\(permit.base)"]
        if case .open(let until) = after.state, after.opensTotal > before.opensTotal {
            logger.warning(
                "the circuit of an upstream address opened; requests are suspended",
                metadata: metadata.merging([
                    "seconds": "\((until - now).inSeconds)", "error": "\(cause?.message ?? "")",
                ]) { $1 })
        } else if after.state == .closed, before.state != .closed {
            logger.notice("the circuit of an upstream address closed; requests resume", metadata: metadata)
        }
    }

    // MARK: Retry budget

    /// Counts a first request for something; the retry budget is a fraction of these.
    func asked(_ target: AssetTarget) {
        let now = uptime()
        change(target, at: now) { $0.budget.asked(at: now) }
    }

    /// Consumes one retry of the origin's budget; returns false if the budget is exhausted.
    func takeRetry(_ target: AssetTarget) -> Bool {
        let now = uptime()
        return change(target, at: now) { $0.budget.take(at: now) }
    }

    // MARK: Hedging

    /// Records a time to the first byte, or a lower bound of it.
    func answered(_ target: AssetTarget, after latency: Duration) {
        change(target, at: uptime()) { $0.latencies.note(latency) }
    }

    /// The delay of a hedge after the first request was sent: the 95th percentile of the latencies, at least 20 ms.
    /// Nil: no hedge.
    func hedgeDelay(_ target: AssetTarget) -> Duration? {
        guard target.settings.hedging else { return nil }
        let now = uptime()
        let late = change(target, at: now) { $0.budget.allows(at: now) ? $0.latencies.percentile(0.95) : nil }
        return late.map { max($0, Self.leastHedgeDelay) }
    }

    private static let leastHedgeDelay = Duration.milliseconds(20)

    // MARK: Ranges

    /// Records a response that suggests how the upstream handles ranges of the asset.
    func observed(_ kind: Observation.Kind, of target: AssetTarget, evidence: String) {
        let now = uptime()
        change(target, at: now) { $0.observations.note(kind, of: target.id, evidence: evidence, at: now) }
    }

    /// Records an unusable response that states a length of the asset.
    func stated(_ length: StatedLength, by target: AssetTarget) {
        let now = uptime()
        let evidence = "An unusable response with status 206 stated \(length.length) bytes."
        change(target, at: now) {
            $0.observations.note(.lengthStated(length), of: target.id, evidence: evidence, at: now)
        }
    }

    /// The length that an unusable response stated for the asset; nil: none.
    func statedLength(of target: AssetTarget) -> StatedLength? {
        let now = uptime()
        return look { $0[target.party]?.observations.statedLength(of: target.id, at: now) }
    }

    /// Records a stored response for the asset: it replaces a stated length.
    func stored(_ target: AssetTarget) {
        let party = target.party
        parties.withLock { $0[party]?.observations.stored(target.id) }
    }

    /// Records a 206: it refutes the observations about ranges.
    func supportsRanges(_ target: AssetTarget) {
        let party = target.party
        parties.withLock { $0[party]?.observations.supportsRanges(target.id) }
    }

    /// Whether requests for the asset should omit `Range`.
    func refusesRanges(_ target: AssetTarget) -> Bool {
        let now = uptime()
        return look { $0[target.party]?.observations.refusesRanges(target.id, at: now) } ?? false
    }

    /// Whether a request for a part of the asset would bring the whole body.
    func lacksRanges(_ target: AssetTarget) -> Bool {
        let now = uptime()
        return look { $0[target.party]?.observations.lacksRanges(target.id, at: now) } ?? false
    }

    // MARK: Regions

    /// Records the redirects of a request for `url` to the region of a bucket.
    func redirected(_ head: UpstreamHead, of target: AssetTarget, from url: String) {
        guard head.redirects > 0, let endpoint = RegionalEndpoint(after: head, to: url) else { return }
        let now = uptime()
        let evidence = "A redirect to \(endpoint.address) with the region \(endpoint.region)."
        change(target, at: now) { $0.observations.note(.regionStated(endpoint), .origin, evidence, at: now) }
    }

    /// The endpoint of the bucket's region; nil: none is known.
    func region(of target: AssetTarget) -> RegionalEndpoint? {
        guard target.settings.auth.kind == .s3 else { return nil }
        let now = uptime()
        return look { $0[target.party]?.observations.region(at: now) }
    }

    // MARK: Observations

    /// The observations about a mounted origin, the earliest first.
    func observations(of origin: String) -> [Observation] {
        let now = uptime()
        return look { $0[origin]?.observations.current(at: now) } ?? []
    }

    /// Drops the observations about a mounted origin.
    func forgetObservations(of origin: String) {
        parties.withLock { $0[origin]?.observations = ObservationTable() }
    }

    /// Drops the observations about a mounted origin with new addresses, and the circuits and failures of the addresses
    /// that it no longer has.
    func moved(_ origin: String, to addresses: [String]) {
        parties.withLock { parties in
            guard var party = parties[origin] else { return }
            party.observations = ObservationTable()
            party.circuits = party.circuits.filter { addresses.contains($0.key) }
            party.failures = party.failures.filter { addresses.contains($0.key) }
            parties[origin] = party
        }
    }

    // MARK: Log rate

    /// Whether a message about the origin may be logged now: at most one a minute.
    func mayComplain(_ target: AssetTarget) -> Bool {
        let now = uptime()
        return change(target, at: now) { party in
            if let last = party.lastComplaint, now - last < .seconds(60) { return false }
            party.lastComplaint = now
            return true
        }
    }

    // MARK: Parts

    /// Reads the health states under the lock.
    func look<Value: Sendable>(_ body: (borrowing [String: Party]) -> Value) -> Value {
        parties.withLock { body($0) }
    }

    /// Changes the health state of the target's party under the lock.
    @discardableResult
    private func change<Value: Sendable>(
        _ target: AssetTarget, at now: Duration, _ body: (inout Party) -> Value
    ) -> Value {
        parties.withLock { parties in
            if parties[target.party] == nil, parties.count >= limit { Self.forgetSome(of: &parties) }
            parties[target.party, default: Party()].lastUse = now
            return body(&parties[target.party, default: Party()])
        }
    }

    /// Drops a quarter of the parties, so that this happens seldom: healthy ones first, and among equals the oldest use
    /// first.
    private static func forgetSome(of parties: inout [String: Party]) {
        let order = parties.sorted { left, right in
            left.value.isWell == right.value.isWell
                ? left.value.lastUse < right.value.lastUse : left.value.isWell
        }
        for (name, _) in order.prefix(max(1, parties.count / 4)) { parties[name] = nil }
    }
}

extension OriginHealth.Party {
    /// A permit for the first admissible address in `places`, and the reasons against the addresses before it.
    fileprivate mutating func admit(
        _ target: AssetTarget, to places: [Int], mayProbe: Bool, at now: Duration
    ) -> (OriginHealth.Permit?, Refusal) {
        var refusal = Refusal()
        for place in places {
            let base = target.base(of: place)
            guard target.settings.circuitBreaker != nil, var circuit = circuits[base] else {
                circuits[base] = nil
                return (target.permit(place, isProbe: false), refusal)
            }
            if !mayProbe, circuit.state != .closed { continue }
            let admission = circuit.admit(at: now)
            circuits[base] = circuit
            switch admission {
            case .admitted: return (target.permit(place, isProbe: false), refusal)
            case .probe: return (target.permit(place, isProbe: true), refusal)
            case .refused(let until): refusal.add(circuit.failuresInARow, failures[base]?.last?.cause, until)
            }
        }
        return (nil, refusal)
    }
}

/// The reasons why no address is admissible.
private struct Refusal: Sendable {
    private var failures = 0
    /// The cause of the last failure of the address with the most failures in a row.
    private var cause: String?
    /// The earliest uptime when an address is admissible again; nil: none is known.
    private var until: Duration?
    /// Whether a probe is in progress at one of the addresses.
    private var isBeingTried = false

    mutating func add(_ failures: Int, _ cause: String?, _ until: Duration?) {
        if failures >= self.failures { (self.failures, self.cause) = (failures, cause) }
        guard let until else { return isBeingTried = true }
        self.until = min(self.until ?? until, until)
    }

    func error(at now: Duration) -> CacheError {
        let history =
            "The upstream failed \(failures) times in a row" + (cause.map { ", the last time with \($0)" } ?? "")
        guard let until, !isBeingTried else {
            return CacheError(
                .upstreamUnreachable(retryAfter: .seconds(1)),
                "\(history); a probe request is in progress.")
        }
        let seconds = max(1, Int64((until - now).inSeconds.rounded(.up)))
        return CacheError(
            .upstreamUnreachable(retryAfter: .seconds(seconds)),
            "\(history); no request is sent to it for another \(seconds) s.")
    }
}

extension AssetTarget {
    /// The key of the upstream's health state.
    var party: String { originName == Origin.absoluteName ? Origin.party(ofServer: url) : originName }

    /// The key of the circuit of address number `place`.
    func base(of place: Int) -> String {
        guard originName != Origin.absoluteName else { return String(Origin.server(of: url)) }
        return place == 0 ? settings.baseURL : settings.mirrors[place - 1]
    }

    fileprivate func permit(_ place: Int, isProbe: Bool) -> OriginHealth.Permit {
        OriginHealth.Permit(party: party, address: place, base: base(of: place), isProbe: isProbe)
    }
}
