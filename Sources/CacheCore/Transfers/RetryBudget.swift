/// Retry budget of an origin: retries may be a fifth of the first requests, so that they never multiply the load on a
/// failing upstream.
///
/// Counts the last ten seconds; a value without a clock.
package struct RetryBudget: Hashable, Sendable {
    /// The requests of one second.
    private struct Bucket: Hashable, Sendable {
        /// The second of uptime that the bucket counts.
        var second: Int64 = -1
        /// First requests.
        var first = 0
        /// Retries and hedges.
        var again = 0
    }

    /// The number of retries that is always allowed within ten seconds.
    static let floor = 10
    /// One retry for so many first requests.
    private static let share = 5
    /// The period that is counted, in seconds.
    private static let seconds: Int64 = 10
    private var buckets = [Bucket](repeating: Bucket(), count: Int(seconds))

    package init() {}

    /// Records a first request.
    package mutating func asked(at now: Duration) { buckets[present(now)].first += 1 }

    /// Whether another retry is allowed.
    package func allows(at now: Duration) -> Bool {
        let oldest = now.components.seconds - Self.seconds
        var (first, again) = (0, 0)
        for bucket in buckets where bucket.second > oldest {
            first += bucket.first
            again += bucket.again
        }
        return again < max(Self.floor, first / Self.share)
    }

    /// Consumes one retry; false if the budget is exhausted.
    package mutating func take(at now: Duration) -> Bool {
        guard allows(at: now) else { return false }
        buckets[present(now)].again += 1
        return true
    }

    /// The index of the bucket for `now`, reset if it counted an earlier second.
    private mutating func present(_ now: Duration) -> Int {
        let second = now.components.seconds
        let index = Int(second % Self.seconds)
        if buckets[index].second != second { buckets[index] = Bucket(second: second) }
        return index
    }
}
