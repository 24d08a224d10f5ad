import CacheCore

/// The progress of a long command on standard error: on a terminal one line that is redrawn at most four times a second.
final class ProgressMeter: Sendable {
    /// The minimum time between two updates.
    static let interval = Duration.milliseconds(250)

    private let terminal: Terminal
    private let throttle = OrderedMutex(.leaf, Throttle(interval: ProgressMeter.interval))

    private init(_ terminal: Terminal) { self.terminal = terminal }

    /// A meter on standard error; nil if that is not a terminal.
    static var onTerminal: ProgressMeter? {
        Terminal.error.isInteractive ? ProgressMeter(.error) : nil
    }

    /// Redraws the line, unless it was drawn just before.
    func show(_ line: @autoclosure () -> ProgressLine) {
        guard throttle.withLock({ $0.isDue(at: ContinuousClock.now) }) else { return }
        // The last column stays free, because some terminals wrap after it.
        terminal.write("\r" + line().text(columns: terminal.size.columns - 1) + "\u{1B}[K")
    }

    /// Removes the line.
    func clear() { terminal.write("\r\u{1B}[K") }
}

/// Limit of the frequency of updates.
struct Throttle {
    let interval: Duration
    private var last: ContinuousClock.Instant?

    init(interval: Duration) { self.interval = interval }

    /// Whether the interval has passed since the last update; then the next interval begins.
    mutating func isDue(at now: ContinuousClock.Instant) -> Bool {
        if let last, last.duration(to: now) < interval { return false }
        last = now
        return true
    }
}
