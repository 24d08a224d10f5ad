import CacheCore

/// The times of the attempts to deliver one event: exponential, with jitter, for 24 hours.
enum WebhookRetry {
    /// The time from the event to its last attempt.
    static let lifetime = Duration.seconds(86_400)
    /// The longest delay after the first attempt, and after any.
    private static let (base, cap) = (Duration.seconds(1), Duration.seconds(3600))
    /// The longest time without requests to a receiver that fails.
    private static let longestPause = Duration.seconds(60)
    /// The longest `Retry-After` that is honoured.
    private static let longestWish = Duration.seconds(3600)

    /// The delay after failed attempt number `attempt`, counted from 1: between half of the ceiling and all of it.
    /// `random` is a number in 0..<1.
    static func delay(after attempt: Int, random: Double) -> Duration {
        jittered(min(cap, base * (1 << min(max(attempt - 1, 0), 20))), random)
    }

    /// The time of the next attempt after failed attempt number `attempt`; nil: it was the last one. The last attempt is
    /// made at the end of the lifetime.
    ///
    /// - Parameter wish: The wait that the receiver has requested.
    static func next(
        after attempt: Int, of createdAt: Timestamp, wish: Duration?, at now: Timestamp, random: Double
    ) -> Timestamp? {
        let end = createdAt + lifetime
        guard now < end else { return nil }
        return min(end, now + max(delay(after: attempt, random: random), min(wish ?? .zero, longestWish)))
    }

    /// The time without requests to a receiver that has failed `failures` times in a row.
    static func pause(after failures: Int, wish: Duration?, random: Double) -> Duration {
        let pause = jittered(min(longestPause, base * (1 << min(max(failures - 1, 0), 20))), random)
        return max(pause, min(wish ?? .zero, longestWish))
    }

    private static func jittered(_ ceiling: Duration, _ random: Double) -> Duration {
        ceiling * (0.5 + min(max(random, 0), 1) / 2)
    }
}
