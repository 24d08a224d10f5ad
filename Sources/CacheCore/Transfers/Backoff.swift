/// How long to wait before a broken transfer is begun again: exponential, capped, with full jitter.
///
/// Full jitter spreads the retries of many transfers that broke together (M. Brooker, Exponential Backoff and Jitter).
package struct Backoff: Hashable, Sendable {
    /// The longest wait before the first retry.
    package var base: Duration
    /// The longest wait of all.
    package var cap: Duration

    package init(base: Duration = .milliseconds(200), cap: Duration = .seconds(10)) {
        self.base = base
        self.cap = cap
    }

    /// The wait before retry number `retry`, counted from 0; `chance` is a number in 0..<1.
    package func delay(beforeRetry retry: Int, chance: Double) -> Duration {
        ceiling(beforeRetry: retry) * min(max(chance, 0), 1)
    }

    /// The longest that `delay` can be.
    package func ceiling(beforeRetry retry: Int) -> Duration {
        min(cap, base * (1 << min(max(retry, 0), 30)))
    }
}
