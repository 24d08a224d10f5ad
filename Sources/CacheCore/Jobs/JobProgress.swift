/// The progress of a prefetch job at one moment.
package struct JobProgress: Hashable, Sendable {
    /// The job without its items.
    package var record: JobRecord
    /// The counts of its items and bytes.
    package var tally: JobTally
    /// The rate of bytes from the upstream over the last seconds.
    package var bytesPerSecond: Double
    /// Increases with every change of the job.
    package var version: Int64
}

/// The item and byte counts of a job.
package struct JobTally: Hashable, Sendable {
    private var counts: [JobState: Int] = [:]
    /// The number of items of unknown size.
    package private(set) var itemsUnknown = 0
    /// The total size of the items of known size.
    private var measuredBytes: Int64 = 0
    package private(set) var bytesFromCache: Int64 = 0
    package private(set) var bytesFromUpstream: Int64 = 0

    package init() {}

    /// The number of items in `state`.
    package subscript(state: JobState) -> Int { counts[state] ?? 0 }
    package var itemsTotal: Int { counts.values.reduce(0, +) }
    /// The total size of the items of known size; nil while no size is known.
    package var bytesTotal: Int64? { itemsUnknown < itemsTotal ? measuredBytes : nil }

    mutating func add(_ item: JobItemRecord) { count(item, times: 1) }

    mutating func remove(_ item: JobItemRecord) { count(item, times: -1) }

    private mutating func count(_ item: JobItemRecord, times: Int) {
        counts[item.state, default: 0] += times
        if item.bytesTotal == nil { itemsUnknown += times }
        measuredBytes += (item.bytesTotal ?? 0) * Int64(times)
        bytesFromCache += item.bytesFromCache * Int64(times)
        bytesFromUpstream += item.bytesFromUpstream * Int64(times)
    }
}
