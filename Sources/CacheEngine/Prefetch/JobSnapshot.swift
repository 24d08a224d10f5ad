package import CacheCore
import CacheStore

/// A prefetch job at one moment, with the totals of its items.
package struct JobSnapshot: Sendable {
    /// The job without its items.
    package var record: JobRecord
    /// The number of items in all states.
    package var itemsTotal: Int
    /// Items that succeeded.
    package var itemsDone: Int
    package var itemsFailed: Int
    package var itemsTimedOut: Int
    package var itemsCancelled: Int
    /// Items of unknown size.
    package var itemsUnknown: Int
    /// The bytes of all items of known size; nil if there are none.
    package var bytesTotal: Int64?
    /// Bytes that were on disk before the job fetched them.
    package var bytesFromCache: Int64
    /// Bytes that were fetched for the job.
    package var bytesFromUpstream: Int64
    /// The rate from the upstream: over the last seconds while the job runs, over its whole time after that.
    package var bytesPerSecond: Double
    /// The estimated time left; nil if it cannot be estimated.
    package var eta: Duration?
    /// Increases with every change of the job.
    package var version: Int64

    /// The bytes that the job has finished, from the cache and from the upstream.
    package var bytesDone: Int64 { bytesFromCache + bytesFromUpstream }
}

extension JobSnapshot {
    /// The snapshot of a scheduled job.
    init(_ progress: JobProgress) {
        let tally = progress.tally
        self.init(
            record: progress.record, itemsTotal: tally.itemsTotal, itemsDone: tally[.succeeded],
            itemsFailed: tally[.failed], itemsTimedOut: tally[.timedOut], itemsCancelled: tally[.cancelled],
            itemsUnknown: tally.itemsUnknown, bytesTotal: tally.bytesTotal, bytesFromCache: tally.bytesFromCache,
            bytesFromUpstream: tally.bytesFromUpstream, bytesPerSecond: progress.bytesPerSecond,
            version: progress.version)
        settle()
    }

    /// The snapshot of a job that is in the catalog only.
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

    /// Computes the rate and the time left.
    private mutating func settle() {
        if let startedAt = record.startedAt, let finishedAt = record.finishedAt {
            let seconds = finishedAt.since(startedAt).inSeconds
            bytesPerSecond = seconds > 0 ? Double(bytesFromUpstream) / seconds : 0
        } else if record.state != .running {
            bytesPerSecond = 0
        } else if let bytesTotal {
            // Before the first byte, the rate limit is the best estimate. Items of unknown size count as the mean of
            // the others.
            let rate = bytesPerSecond > 0 ? bytesPerSecond : record.maxBytesPerSecond.map { Double($0) } ?? 0
            let mean = Double(bytesTotal) / Double(max(1, itemsTotal - itemsUnknown))
            let left = Double(max(0, bytesTotal - bytesDone)) + mean * Double(itemsUnknown)
            if rate > 0 { eta = .seconds(left / rate) }
        }
    }
}
