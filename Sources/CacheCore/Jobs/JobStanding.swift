/// How a prefetch job stands at one moment.
package struct JobStanding: Hashable, Sendable {
    /// Without its items.
    package var record: JobRecord
    package var tally: JobTally
    /// What came from the upstream lately.
    package var bytesPerSecond: Double
    /// Grows with every change.
    package var version: Int64
}

/// What the items of a job add up to.
package struct JobTally: Hashable, Sendable {
    private var counts: [JobState: Int] = [:]
    /// Items of unknown size.
    package private(set) var itemsUnknown = 0
    private var measuredBytes: Int64 = 0
    package private(set) var bytesFromCache: Int64 = 0
    package private(set) var bytesFromUpstream: Int64 = 0

    package init() {}

    package subscript(state: JobState) -> Int { counts[state] ?? 0 }
    package var itemsTotal: Int { counts.values.reduce(0, +) }
    /// Of the items of known size; nil while there are none.
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
