import CacheCore

/// Timeouts of one transfer as a value: from the reported events it computes the next timeout to expire.
struct TransferTimers {
    /// The phase of the current hop.
    private enum Step {
        case connecting
        case awaitingHead
        case receiving
        /// The rest of the body is unwanted; waiting for it is only worth a short time, to keep the connection.
        case draining
    }

    /// Maximum pause between bytes of an unwanted body.
    static let drainLimit = Duration.seconds(1)

    private let limits: TransferTimeouts
    /// Start of the transfer, shifted by the time it was paused.
    private var begun: Instant
    private var step = Step.connecting
    /// Start of the current phase, or the last arrival of body bytes.
    private var mark: Instant
    private var pausedAt: Instant?
    /// The end of an attempt to connect to one of several addresses; nil: that of the connect timeout.
    private var attemptEnd: Instant?
    /// Whether the total timeout applies. It does not apply to a whole body; it can have any length.
    private var hasTotal = true

    init(_ limits: TransferTimeouts, begun: Instant) {
        self.limits = limits
        self.begun = begun
        mark = begun
    }

    /// Whether the current hop has an established connection.
    var isConnected: Bool { if case .connecting = step { false } else { true } }

    /// Whether the final response of the current hop has begun.
    var isResponding: Bool {
        switch step {
        case .connecting, .awaitingHead: false
        case .receiving, .draining: true
        }
    }

    /// A hop starts to connect; the connect timeout runs.
    mutating func hopBegan(at now: Instant) { enter(.connecting, now) }
    /// An attempt to connect begins, the first of `count` that share the rest of the connect timeout.
    mutating func attemptBegan(of count: Int, at now: Instant) {
        guard count > 1, let connect = limits.connect else { return attemptEnd = nil }
        attemptEnd = now + max(.zero, now.duration(to: mark + connect)) / count
    }
    /// The connection is established; the first-byte timeout runs.
    mutating func connected(at now: Instant) { enter(.awaitingHead, now) }
    /// The final response's status line has arrived; the idle timeout runs.
    mutating func responded(at now: Instant) { enter(.receiving, now) }
    /// The rest of the body is unwanted; `drainLimit` runs.
    mutating func drains(at now: Instant) { enter(.draining, now) }
    /// Removes the total timeout.
    mutating func liftTotal() { hasTotal = false }

    /// Stops all timeouts.
    mutating func pause(at now: Instant) { pausedAt = now }

    /// Restarts all timeouts; the idle timeout starts from `now`.
    mutating func goOn(at now: Instant) {
        guard let pausedAt else { return }
        begun += pausedAt.duration(to: now)
        mark = max(mark, now)
        self.pausedAt = nil
    }

    /// Body bytes have arrived. A `now` in the future postpones the idle timeout during a wait of the rate limit.
    mutating func arrived(at now: Instant) { if case .receiving = step { mark = now } }

    /// The next timeout to expire and its time; nil if none runs.
    var next: (timeout: CacheError.Timeout, at: Instant)? {
        guard pausedAt == nil else { return nil }
        let own: (CacheError.Timeout, Instant)? =
            switch step {
            case .connecting: limits.connect.map { (.connect, min(attemptEnd ?? mark + $0, mark + $0)) }
            case .awaitingHead: limits.firstByte.map { (.firstByte, mark + $0) }
            case .receiving: limits.idle.map { (.idle, mark + $0) }
            case .draining: (.idle, mark + Self.drainLimit)
            }
        let total: (CacheError.Timeout, Instant)? = hasTotal ? limits.total.map { (.total, begun + $0) } : nil
        return [own, total].compactMap(\.self).min { $0.1 < $1.1 }.map { ($0.0, $0.1) }
    }

    /// The expired timeout; nil if none has expired.
    func expired(at now: Instant) -> CacheError.Timeout? {
        next.flatMap { $0.at <= now ? $0.timeout : nil }
    }

    private mutating func enter(_ step: Step, _ now: Instant) {
        self.step = step
        mark = now
        attemptEnd = nil
    }
}
