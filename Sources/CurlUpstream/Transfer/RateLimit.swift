/// Spaces one transfer's arrivals out to a rate: told what came, it says until when to rest.
///
/// A transfer's own and not libcurl's, whose limit averages over seconds and lets a window of ordinary size through at once.
struct RateLimit {
    typealias Instant = ContinuousClock.Instant

    /// Rests shorter than this are saved up.
    static let shortestRest = Duration.milliseconds(2)

    /// Bytes per second; nil: no limit.
    private(set) var bytesPerSecond: Int64?
    /// When what has come so far would have come at the rate.
    private var due: Instant?

    init(bytesPerSecond: Int64? = nil) { self.bytesPerSecond = bytesPerSecond }

    /// Goes on at another rate; answers until when nothing more should be taken, nil where there is nothing to wait for.
    mutating func change(to rate: Int64?, at now: Instant) -> Instant? {
        defer { bytesPerSecond = rate }
        guard let old = bytesPerSecond, let rate, old != rate, rate > 0, let due, due > now else {
            if rate == nil { due = nil }
            return due
        }
        self.due = now + now.duration(to: due) * (Double(old) / Double(rate))
        return self.due
    }

    /// Until when nothing more should be taken; nil: go on.
    mutating func took(_ bytes: Int, at now: Instant) -> Instant? {
        guard let rate = bytesPerSecond, rate > 0 else { return nil }
        let next = max(due ?? now, now) + .seconds(Double(bytes) / Double(rate))
        due = next
        return now.duration(to: next) >= Self.shortestRest ? next : nil
    }
}
