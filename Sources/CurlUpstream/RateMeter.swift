/// Spaces one transfer's arrivals out to a rate: told what came, it says until when to rest.
///
/// A transfer's own and not libcurl's, whose limit averages over seconds and lets a window of ordinary size through at once.
struct RateMeter {
    typealias Instant = ContinuousClock.Instant

    /// Rests shorter than this are saved up.
    static let shortestRest = Duration.milliseconds(2)

    /// Bytes per second; nil: no limit.
    var bytesPerSecond: Int64?
    /// When what has come so far would have come at the rate.
    private var due: Instant?

    init(bytesPerSecond: Int64? = nil) { self.bytesPerSecond = bytesPerSecond }

    /// Until when nothing more should be taken; nil: go on.
    mutating func took(_ bytes: Int, at now: Instant) -> Instant? {
        guard let rate = bytesPerSecond, rate > 0 else { return nil }
        let next = max(due ?? now, now) + .seconds(Double(bytes) / Double(rate))
        due = next
        return now.duration(to: next) >= Self.shortestRest ? next : nil
    }
}
