/// How many of an origin's requests may be second tries: a fifth of the first ones, so that retries never become a storm.
///
/// Counted over the last ten seconds; a value without a clock.
package struct RetryBudget: Hashable, Sendable {
    private struct Bucket: Hashable, Sendable {
        /// The second it counts.
        var second: Int64 = -1
        var first = 0
        var again = 0
    }

    /// What is always allowed within the time that is looked at.
    package static let floor = 10
    private static let share = 5
    private static let seconds: Int64 = 10
    private var buckets = [Bucket](repeating: Bucket(), count: Int(seconds))

    package init() {}

    /// A first request is sent.
    package mutating func asked(at now: Duration) { buckets[present(now)].first += 1 }

    /// Whether a second try would be allowed.
    package func allows(at now: Duration) -> Bool {
        let oldest = now.components.seconds - Self.seconds
        var (first, again) = (0, 0)
        for bucket in buckets where bucket.second > oldest {
            first += bucket.first
            again += bucket.again
        }
        return again < max(Self.floor, first / Self.share)
    }

    /// Takes a second try out of the budget; false where it is spent.
    package mutating func take(at now: Duration) -> Bool {
        guard allows(at: now) else { return false }
        buckets[present(now)].again += 1
        return true
    }

    private mutating func present(_ now: Duration) -> Int {
        let second = now.components.seconds
        let index = Int(second % Self.seconds)
        if buckets[index].second != second { buckets[index] = Bucket(second: second) }
        return index
    }
}
