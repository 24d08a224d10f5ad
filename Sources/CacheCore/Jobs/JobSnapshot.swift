/// A prefetch job at one moment, with the totals of its items.
package struct JobSnapshot: Hashable, Sendable {
    /// The place of a job of a fleet.
    package struct Place: Hashable, Sendable {
        /// The node that runs the job; nil: none.
        package var node: String?

        package init(node: String?) { self.node = node }
    }

    /// A prediction for an unfinished job.
    package struct Forecast: Hashable, Sendable {
        /// The predicted end; nil: it cannot be predicted.
        package var finishAt: Timestamp?
        /// Whether the job will probably miss its deadline.
        package var isAtRisk = false

        package init(finishAt: Timestamp? = nil, isAtRisk: Bool = false) {
            self.finishAt = finishAt
            self.isAtRisk = isAtRisk
        }
    }

    /// The job without its items.
    package let record: JobRecord
    /// The counts of its items and bytes.
    package let tally: JobTally
    /// The rate from the upstream: over the last seconds while the job runs, over its whole time after that.
    package let bytesPerSecond: Double
    /// The estimated time left; nil if it cannot be estimated.
    package let eta: Duration?
    package let forecast: Forecast
    /// Whether the unfinished job waits for its time.
    package let timeState: JobTimes.State
    /// Increases with every change of the job.
    package var version: Int64
    /// Nil: a job of this node alone.
    package var place: Place?
    /// Whether another node of the fleet runs the job, or has run it.
    package var isOfOtherNode = false

    /// `presentRate`: the rate from the upstream over the last seconds.
    package init(
        record: JobRecord, tally: JobTally, presentRate: Double = 0, forecast: Forecast = Forecast(),
        timeState: JobTimes.State = JobTimes.State(), version: Int64
    ) {
        var (rate, eta) = (0.0, Duration?.none)
        if let startedAt = record.startedAt, let finishedAt = record.finishedAt {
            let seconds = finishedAt.since(startedAt).inSeconds
            if seconds > 0 { rate = Double(tally.bytesFromUpstream) / seconds }
        } else if record.state == .running {
            rate = presentRate
            // Before the first byte, the rate limit is the best estimate.
            let expected = rate > 0 ? rate : record.maxBytesPerSecond.map { Double($0) } ?? 0
            if let bytesExpected = tally.bytesExpected, expected > 0 {
                eta = .seconds(Double(max(0, bytesExpected - tally.bytesDone)) / expected)
            }
        }
        (self.record, self.tally, self.forecast) = (record, tally, forecast)
        (self.timeState, self.version) = (timeState, version)
        (bytesPerSecond, self.eta) = (rate, eta)
    }
}

/// The item and byte counts of a job.
package struct JobTally: Hashable, Sendable {
    private var counts: [JobState: Int]
    /// The number of items of unknown size.
    package private(set) var itemsUnknown: Int
    /// The total size of the items of known size.
    private var measuredBytes: Int64
    /// Bytes that were on disk before the job fetched them.
    package private(set) var bytesFromCache: Int64
    /// Bytes that were fetched for the job.
    package private(set) var bytesFromUpstream: Int64

    package init(
        counts: [JobState: Int] = [:], itemsUnknown: Int = 0, measuredBytes: Int64 = 0, bytesFromCache: Int64 = 0,
        bytesFromUpstream: Int64 = 0
    ) {
        self.counts = counts
        self.itemsUnknown = itemsUnknown
        self.measuredBytes = measuredBytes
        self.bytesFromCache = bytesFromCache
        self.bytesFromUpstream = bytesFromUpstream
    }

    /// The number of items in `state`.
    package subscript(state: JobState) -> Int { counts[state] ?? 0 }
    package var itemsTotal: Int { counts.values.reduce(0, +) }
    /// The total size of the items of known size; nil while no size is known.
    package var bytesTotal: Int64? { itemsUnknown < itemsTotal ? measuredBytes : nil }
    /// The bytes of all items. An item of unknown size counts as the mean of the others; nil while no size is known.
    package var bytesExpected: Int64? {
        bytesTotal.map { known in
            let mean = Double(known) / Double(max(1, itemsTotal - itemsUnknown))
            return itemsUnknown == 0 ? known : Int64(saturating: Double(known) + mean * Double(itemsUnknown))
        }
    }
    /// The finished bytes ÷ ``bytesExpected``, at most 1; nil while no size is known.
    package var progressRatio: Double? {
        bytesExpected.map { $0 > 0 ? min(1, Double(bytesDone) / Double($0)) : 1 }
    }
    /// The bytes that the job has finished, from the cache and from the upstream.
    package var bytesDone: Int64 { bytesFromCache + bytesFromUpstream }

    /// Counts items in another state.
    package mutating func move(_ count: Int, from old: JobState, to new: JobState) {
        counts[old, default: 0] -= count
        counts[new, default: 0] += count
    }

    /// Counts queued items of unknown size.
    package mutating func addUnknown(_ count: Int) {
        guard count > 0 else { return }
        counts[.queued, default: 0] += count
        itemsUnknown += count
    }

    /// Counts another item.
    package mutating func add(_ item: JobItemRecord) { count(item, times: 1) }

    mutating func remove(_ item: JobItemRecord) { count(item, times: -1) }

    private mutating func count(_ item: JobItemRecord, times: Int) {
        counts[item.state, default: 0] += times
        if item.bytesTotal == nil { itemsUnknown += times }
        measuredBytes += (item.bytesTotal ?? 0) * Int64(times)
        bytesFromCache += item.bytesFromCache * Int64(times)
        bytesFromUpstream += item.bytesFromUpstream * Int64(times)
    }
}
