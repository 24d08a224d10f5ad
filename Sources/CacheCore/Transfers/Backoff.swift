/// Computes the delay before a retry: exponential, capped, with full jitter.
///
/// Full jitter spreads the retries of transfers that failed together (M. Brooker, "Exponential Backoff and Jitter", AWS
/// Architecture Blog).
package enum Backoff {
    /// The longest delay before the first retry.
    private static let base = Duration.milliseconds(200)
    /// The longest delay before any retry.
    private static let cap = Duration.seconds(10)

    /// The delay before retry number `retry`, counted from 0; `random` is a number in 0..<1.
    package static func delay(beforeRetry retry: Int, random: Double) -> Duration {
        ceiling(beforeRetry: retry) * min(max(random, 0), 1)
    }

    /// The upper bound of `delay`.
    package static func ceiling(beforeRetry retry: Int) -> Duration {
        min(cap, base * (1 << min(max(retry, 0), 30)))
    }
}
