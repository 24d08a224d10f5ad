import CacheCore
import Logging
import Synchronization

/// How the origins' addresses have answered lately: which of them may be asked, how often a request may be tried again,
/// and when a second one is worth sending.
///
/// What is known of an origin is kept under its name; reads of absolute URLs are told apart by scheme, host and port, so
/// that one dead host does not stand for all.
final class OriginHealth: Sendable {
    /// Leave to send one request; whoever has it says with `settle`, once, how that went.
    struct Permit: Hashable, Sendable {
        let party: String
        /// The place in the origin's list of addresses: 0 is its base URL, its mirrors follow.
        let address: Int
        /// The base URL its circuit is kept under.
        let base: String
        let isProbe: Bool
    }

    /// What a request showed of the address.
    enum Showing: Sendable {
        /// It answers.
        case well
        /// It does not, or as a broken one does.
        case broken
        /// Nothing.
        case nothing

        /// A response with that status: these alone are those of a failing server.
        init(status: Int) { self = CacheError.Code.isOfFailingServer(status) ? .broken : .well }
    }

    struct Party: Sendable {
        var circuits: [String: CircuitBreaker] = [:]
        var budget = RetryBudget()
        var latencies = LatencyGauge()
        var lastUse = Duration.zero
        var lastComplaint: Duration?
        /// Whether it refused a `Range` and answered the same request without one.
        var refusesRanges = false

        var isWell: Bool { circuits.values.allSatisfy { $0.state == .closed } }
    }

    let uptime: @Sendable () -> Duration
    private let chance: any Chance
    private let logger: Logger
    /// As many are remembered; beyond it those go that are well and were not asked for longest.
    private let limit: Int
    private let parties = Mutex<[String: Party]>([:])

    init(uptime: @escaping @Sendable () -> Duration, chance: any Chance, logger: Logger, limit: Int = 1024) {
        self.uptime = uptime
        self.chance = chance
        self.logger = logger
        self.limit = limit
    }

    // MARK: Leave to ask

    /// Leave to ask one of the target's first `count` addresses: the first that may be asked, from `first` on and round,
    /// without those in `skipped`. Where it `mayProbe`, one whose pause is over counts.
    ///
    /// Throws `.upstreamUnreachable` where there is none.
    func admit(
        _ target: AssetTarget, of count: Int = 1, from first: Int = 0, without skipped: Set<Int> = [],
        mayProbe: Bool = true
    ) throws(CacheError) -> Permit {
        let places = (0..<count).map { (first + $0) % count }.filter { !skipped.contains($0) }
        let now = uptime()
        let (permit, refusal) = change(target, at: now) { $0.admit(target, to: places, mayProbe: mayProbe, at: now) }
        guard let permit else { throw refusal.error(at: now) }
        return permit
    }

    /// Which of the target's first `count` addresses a request would go to now, nil where to none, and why not to the
    /// first: what `admit` would say, without its leave.
    func foresee(_ target: AssetTarget, of count: Int) -> (address: Int?, whyNot: CacheError?) {
        let now = uptime()
        var party = look { $0[target.party] } ?? Party()
        let (permit, refusal) = party.admit(target, to: Array(0..<count), mayProbe: true, at: now)
        return (permit?.address, permit?.address == 0 ? nil : refusal.error(at: now))
    }

    /// What was admitted a while ago is sent now: the same leave, or that of a probe, where the address may still be asked.
    func readmit(_ permit: Permit, of target: AssetTarget) throws(CacheError) -> Permit {
        guard !permit.isProbe else { return permit }
        return try admit(target, of: permit.address + 1, without: Set(0..<permit.address))
    }

    /// What the request showed of its address.
    func settle(_ permit: Permit, _ showing: Showing, by settings: OriginSettings.CircuitBreaker?) {
        let now = uptime()
        let chance = showing == .broken ? self.chance.uniform() : 0
        let (before, after) = parties.withLock { parties -> (CircuitBreaker, CircuitBreaker) in
            let before = parties[permit.party]?.circuits[permit.base] ?? CircuitBreaker()
            var circuit = before
            switch showing {
            case .well: circuit.succeeded()
            case .nothing: circuit.abandoned(asProbe: permit.isProbe, at: now)
            case .broken:
                guard let settings else { return (before, before) }
                circuit.failed(asProbe: permit.isProbe, settings: settings, at: now, chance: chance)
            }
            if circuit != before { parties[permit.party]?.circuits[permit.base] = circuit }
            return (before, circuit)
        }
        log(permit, before, after, at: now)
    }

    private func log(_ permit: Permit, _ before: CircuitBreaker, _ after: CircuitBreaker, at now: Duration) {
        let metadata: Logger.Metadata = ["origin": "\(permit.party)", "address": "\(permit.base)"]
        if case .open(let until) = after.state, after.opensTotal > before.opensTotal {
            logger.warning(
                "an upstream keeps failing and is left alone",
                metadata: metadata.merging(["seconds": "\((until - now).inSeconds)"]) { $1 })
        } else if after.state == .closed, before.state != .closed {
            logger.notice("an upstream that was left alone answers again", metadata: metadata)
        }
    }

    // MARK: Trying again

    /// A first request for something is about to be sent.
    func asked(_ target: AssetTarget) {
        let now = uptime()
        change(target, at: now) { $0.budget.asked(at: now) }
    }

    /// Takes one second try out of the origin's budget; false where it is spent.
    func takeRetry(_ target: AssetTarget) -> Bool {
        let now = uptime()
        return change(target, at: now) { $0.budget.take(at: now) }
    }

    // MARK: Hedging

    /// How long the origin took to its first byte, or longer.
    func answered(_ target: AssetTarget, after latency: Duration) {
        change(target, at: uptime()) { $0.latencies.note(latency) }
    }

    /// When a second request is worth sending, from when the first was sent on; nil: never.
    func hedgeDelay(_ target: AssetTarget) -> Duration? {
        guard target.settings.hedging else { return nil }
        let now = uptime()
        let late = change(target, at: now) { $0.budget.allows(at: now) ? $0.latencies.percentile(0.95) : nil }
        return late.map { max($0, Self.leastHedgeDelay) }
    }

    private static let leastHedgeDelay = Duration.milliseconds(20)

    // MARK: Ranges

    /// The origin refused a `Range`, and has answered without one.
    func refusedRange(_ target: AssetTarget) {
        change(target, at: uptime()) { $0.refusesRanges = true }
    }

    /// Whether the first request for an asset of the origin does better without a `Range`.
    func refusesRanges(_ target: AssetTarget) -> Bool { look { $0[target.party]?.refusesRanges } ?? false }

    // MARK: Complaints

    /// Whether something is to be said of the origin that is said once a minute at most.
    func mayComplain(_ target: AssetTarget) -> Bool {
        let now = uptime()
        return change(target, at: now) { party in
            if let last = party.lastComplaint, now - last < .seconds(60) { return false }
            party.lastComplaint = now
            return true
        }
    }

    // MARK: Parts

    func look<Value: Sendable>(_ body: (borrowing [String: Party]) -> Value) -> Value {
        parties.withLock { body($0) }
    }

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

    /// Forgets a quarter, so that this is seldom done: those that are well first, and of these those last used longest ago.
    private static func forgetSome(of parties: inout [String: Party]) {
        let order = parties.sorted { left, right in
            left.value.isWell == right.value.isWell
                ? left.value.lastUse < right.value.lastUse : left.value.isWell
        }
        for (name, _) in order.prefix(max(1, parties.count / 4)) { parties[name] = nil }
    }
}

extension OriginHealth.Party {
    /// Leave to ask the first of the target's addresses at `places` that may be asked, and why those before it may not.
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
            case .refused(let until): refusal.add(circuit.failuresInARow, until)
            }
        }
        return (nil, refusal)
    }
}

/// Why none of the addresses may be asked.
private struct Refusal: Sendable {
    private var failures = 0
    /// When the first of them may be asked again; nil: one is being tried.
    private var until: Duration?
    private var isBeingTried = false

    mutating func add(_ failures: Int, _ until: Duration?) {
        self.failures = max(self.failures, failures)
        guard let until else { return isBeingTried = true }
        self.until = min(self.until ?? until, until)
    }

    func error(at now: Duration) -> CacheError {
        let history = "The upstream failed \(failures) times in a row"
        guard let until, !isBeingTried else {
            return CacheError(
                .upstreamUnreachable(retryAfter: .seconds(1)),
                "\(history); whether it is well again is just being tried.")
        }
        let seconds = max(1, Int64((until - now).inSeconds.rounded(.up)))
        return CacheError(
            .upstreamUnreachable(retryAfter: .seconds(seconds)),
            "\(history); it is left alone for another \(seconds) s.")
    }
}

extension AssetTarget {
    /// Whom the health of its upstream is kept under.
    var party: String {
        originName == Origin.absoluteName ? "\(originName) \(server)" : originName
    }

    /// Scheme, host and port of its URL.
    private var server: Substring {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count < 3 ? url[...] : url[..<parts[2].endIndex]
    }

    /// What the circuit of its address number `place` is kept under.
    func base(of place: Int) -> String {
        guard originName != Origin.absoluteName else { return String(server) }
        return place == 0 ? settings.baseURL : settings.mirrors[place - 1]
    }

    fileprivate func permit(_ place: Int, isProbe: Bool) -> OriginHealth.Permit {
        OriginHealth.Permit(party: party, address: place, base: base(of: place), isProbe: isProbe)
    }
}
