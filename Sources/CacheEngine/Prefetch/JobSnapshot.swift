package import CacheCore
import CacheStore

/// A prefetch job at one moment, with what its items add up to.
package struct JobSnapshot: Sendable {
    /// Without its items.
    package var record: JobRecord
    package var itemsTotal: Int
    /// Those that succeeded.
    package var itemsDone: Int
    package var itemsFailed: Int
    package var itemsTimedOut: Int
    package var itemsCancelled: Int
    /// Items of unknown size.
    package var itemsUnknown: Int
    /// Of the items of known size; nil while there are none.
    package var bytesTotal: Int64?
    package var bytesFromCache: Int64
    package var bytesFromUpstream: Int64
    /// From the upstream: over the last seconds while it runs, over all its time once it is finished.
    package var bytesPerSecond: Double
    /// Nil where it cannot be said.
    package var eta: Duration?
    /// Grows with every change.
    package var version: Int64

    package var bytesDone: Int64 { bytesFromCache + bytesFromUpstream }
}

extension JobSnapshot {
    /// Of a job that is scheduled.
    init(_ standing: JobStanding) {
        let tally = standing.tally
        self.init(
            record: standing.record, itemsTotal: tally.itemsTotal, itemsDone: tally[.succeeded],
            itemsFailed: tally[.failed], itemsTimedOut: tally[.timedOut], itemsCancelled: tally[.cancelled],
            itemsUnknown: tally.itemsUnknown, bytesTotal: tally.bytesTotal, bytesFromCache: tally.bytesFromCache,
            bytesFromUpstream: tally.bytesFromUpstream, bytesPerSecond: standing.bytesPerSecond,
            version: standing.version)
        settle()
    }

    /// Of a job that only the catalog knows any more.
    init(_ summary: JobSummary) {
        let count = { (state: JobState) in summary.items[state] ?? 0 }
        self.init(
            record: summary.record, itemsTotal: summary.items.values.reduce(0, +), itemsDone: count(.succeeded),
            itemsFailed: count(.failed), itemsTimedOut: count(.timedOut), itemsCancelled: count(.cancelled),
            itemsUnknown: summary.itemsUnknown, bytesTotal: summary.bytesTotal, bytesFromCache: summary.bytesFromCache,
            bytesFromUpstream: summary.bytesFromUpstream, bytesPerSecond: 0,
            version: (summary.record.finishedAt ?? summary.record.createdAt).milliseconds)
        settle()
    }

    /// Works out rate and time left from what is known.
    private mutating func settle() {
        if let startedAt = record.startedAt, let finishedAt = record.finishedAt {
            let seconds = finishedAt.since(startedAt).inSeconds
            bytesPerSecond = seconds > 0 ? Double(bytesFromUpstream) / seconds : 0
        } else if record.state != .running {
            bytesPerSecond = 0
        } else if let bytesTotal {
            // Nothing came yet: the job's own limit is the best guess. Items of unknown size count as the mean of the others.
            let rate = bytesPerSecond > 0 ? bytesPerSecond : record.maxBytesPerSecond.map { Double($0) } ?? 0
            let mean = Double(bytesTotal) / Double(max(1, itemsTotal - itemsUnknown))
            let left = Double(max(0, bytesTotal - bytesDone)) + mean * Double(itemsUnknown)
            if rate > 0 { eta = .seconds(left / rate) }
        }
    }
}
