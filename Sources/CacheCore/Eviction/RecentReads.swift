/// Filters repeated reads of one asset. Reads of a segment less than the interval apart count as one, so a repeated
/// read need not take the lock of the ledger.
package struct RecentReads: Sendable {
    /// In seconds.
    static let interval: UInt32 = 300
    /// The number of segments after which the filter starts again.
    private static let limit = 1024

    private var grid: SegmentGrid?
    /// The second (since 1970) at which each segment was last counted.
    private var times: [Int32: UInt32] = [:]

    package init() {}

    /// Whether a read at `now` counts; `last`: the last counted read, 0: none. A read also counts if the clock was set
    /// back.
    static func isDue(_ now: UInt32, after last: UInt32) -> Bool {
        last == 0 || now < last || now - last >= interval
    }

    /// Records a read of `run`. Returns the part of the run from the first to the last segment with a counted read; nil
    /// if none counts.
    package mutating func record(_ run: ByteRange, in grid: SegmentGrid, at now: Timestamp) -> ByteRange? {
        if self.grid != grid || times.count > Self.limit {
            times = [:]
            self.grid = grid
        }
        let now = UInt32(clamping: now.seconds)
        var due: ByteRange?
        for index in grid.indices(of: run) where Self.isDue(now, after: times[index] ?? 0) {
            times[index] = now
            let part = grid.run(of: index).clamped(to: run)
            due = (due ?? part).lowerBound..<part.upperBound
        }
        return due
    }

    /// Forgets all reads after segments were evicted: a read of their new bytes counts at once.
    package mutating func forget() { times = [:] }
}
