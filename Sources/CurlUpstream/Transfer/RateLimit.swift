/// Rate limiter of one transfer as a value: for received bytes it returns the time until which receiving must wait.
///
/// libcurl's own limit is not used: it averages over seconds and passes a window of ordinary size at once.
struct RateLimit {
    /// Shorter waits are accumulated until they reach this length.
    static let shortestRest = Duration.milliseconds(2)

    /// Bytes per second; nil: no limit.
    private(set) var bytesPerSecond: Int64?
    /// The time when all bytes so far would have arrived at the exact rate.
    private var due: Instant?

    init(bytesPerSecond: Int64? = nil) { self.bytesPerSecond = bytesPerSecond }

    /// Changes the rate. Returns the time until which receiving must wait; nil: no wait.
    mutating func change(to rate: Int64?, at now: Instant) -> Instant? {
        defer { bytesPerSecond = rate }
        guard let old = bytesPerSecond, let rate, old != rate, rate > 0, let due, due > now else {
            if rate == nil { due = nil }
            return due
        }
        self.due = now + now.duration(to: due) * (Double(old) / Double(rate))
        return self.due
    }

    /// Records received bytes. Returns the time until which receiving must wait; nil: no wait.
    mutating func took(_ bytes: Int, at now: Instant) -> Instant? {
        guard let rate = bytesPerSecond, rate > 0 else { return nil }
        let next = max(due ?? now, now) + .seconds(Double(bytes) / Double(rate))
        due = next
        return now.duration(to: next) >= Self.shortestRest ? next : nil
    }
}
