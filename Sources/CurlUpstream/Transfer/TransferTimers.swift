import CacheCore

/// The waits of one transfer as a value: told what happened when, it says which limit runs out next.
struct TransferTimers {
    typealias Instant = ContinuousClock.Instant

    private enum Step {
        case connecting
        case awaitingHead
        case receiving
        /// Nothing of what still comes is wanted; it is worth a short wait only, to keep the connection.
        case draining
    }

    /// How long an unwanted body may keep its connection waiting.
    static let drainLimit = Duration.seconds(1)

    private let limits: TransferTimeouts
    /// When it began, later by as long as it was paused.
    private var begun: Instant
    private var step = Step.connecting
    /// When the present step began, or its last bytes came.
    private var mark: Instant
    private var pausedAt: Instant?
    /// Whether the total holds: not for a whole body, which may be of any length.
    private var hasTotal = true

    init(_ limits: TransferTimeouts, begun: Instant) {
        self.limits = limits
        self.begun = begun
        mark = begun
    }

    /// Whether the present hop has a connection.
    var isConnected: Bool { if case .connecting = step { false } else { true } }

    mutating func hopBegan(at now: Instant) { enter(.connecting, now) }
    mutating func connected(at now: Instant) { enter(.awaitingHead, now) }
    mutating func responded(at now: Instant) { enter(.receiving, now) }
    mutating func drains(at now: Instant) { enter(.draining, now) }
    mutating func liftTotal() { hasTotal = false }

    /// No limit runs from here on.
    mutating func pause(at now: Instant) { pausedAt = now }

    /// The limits run again, the idle one anew.
    mutating func goOn(at now: Instant) {
        guard let pausedAt else { return }
        begun += pausedAt.duration(to: now)
        mark = max(mark, now)
        self.pausedAt = nil
    }

    /// Bytes have come; an instant ahead holds the idle limit back until then.
    mutating func arrived(at now: Instant) { if case .receiving = step { mark = now } }

    /// The limit that runs out first, and when; nil where nothing is limited.
    var next: (timeout: CacheError.Timeout, at: Instant)? {
        guard pausedAt == nil else { return nil }
        let own: (CacheError.Timeout, Instant)? =
            switch step {
            case .connecting: limits.connect.map { (.connect, mark + $0) }
            case .awaitingHead: limits.firstByte.map { (.firstByte, mark + $0) }
            case .receiving: limits.idle.map { (.idle, mark + $0) }
            case .draining: (.idle, mark + Self.drainLimit)
            }
        let total: (CacheError.Timeout, Instant)? = hasTotal ? limits.total.map { (.total, begun + $0) } : nil
        return [own, total].compactMap(\.self).min { $0.1 < $1.1 }.map { ($0.0, $0.1) }
    }

    /// The limit that has run out, if one has.
    func expired(at now: Instant) -> CacheError.Timeout? {
        next.flatMap { $0.at <= now ? $0.timeout : nil }
    }

    private mutating func enter(_ step: Step, _ now: Instant) {
        self.step = step
        mark = now
    }
}
