/// Which segments of one asset were read lately: reads of a segment that are closer together than the interval count as one,
/// and those that do not count need not ask anybody.
package struct ReadMemory: Sendable {
    /// In seconds.
    static let interval: UInt32 = 300
    private static let limit = 1024

    private var grid: SegmentGrid?
    /// When each was last read, in seconds since 1970.
    private var times: [Int32: UInt32] = [:]

    package init() {}

    /// Whether a read at `now` counts; a clock that was put back does not silence reads. `last`: 0 where there was none.
    static func isDue(_ now: UInt32, after last: UInt32) -> Bool {
        last == 0 || now < last || now - last >= interval
    }

    /// What of a run that is read has segments whose reads count again; nil: nothing has.
    package mutating func take(_ run: ByteRange, in grid: SegmentGrid, at now: Timestamp) -> ByteRange? {
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

    /// Segments have gone: reads of what comes in their place count at once.
    package mutating func forget() { times = [:] }
}
