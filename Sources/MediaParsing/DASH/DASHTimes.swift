import CacheCore

/// The times and numbers of the segments of one representation in one period (ISO/IEC 23009-1 §5.3.9.5 and §5.3.9.6).
struct DASHTimes {
    struct Segment {
        /// The value of `$Number$`.
        var number: Int64
        /// The value of `$Time$`, in units of the timescale.
        var time: Int64
        /// The position in the list of segments of the period, from 0.
        var index: Int
        /// The presentation times in seconds.
        var span: Range<Double>
    }

    /// The available times of a dynamic manifest, on the time line of its periods (§5.3.9.5.3).
    struct Window {
        /// The seconds from `availabilityStartTime` to the present time; nil: unknown.
        var edge: Double?
        /// `timeShiftBufferDepth`; nil: unlimited.
        var depth: Double?
    }

    private let info: DASHSegments
    /// The beginning of the period in seconds.
    private let start: Double
    /// The end of the period in seconds; nil: unknown.
    private let end: Double?
    /// The maximum number of segments, with those outside of the period.
    private let limit: Int
    private let timescale: Double
    private let timeOffset: Int64
    private var segments: [Segment] = []
    /// The number of segments, with those outside of the period.
    private var count = 0
    /// The number of entries without segments; they count against the limit because they take time.
    private var emptyCount = 0

    private init(_ info: DASHSegments, start: Double, end: Double?, limit: Int) {
        self.info = info
        self.start = start
        self.end = end
        self.limit = limit
        timescale = Double(info.timescale ?? 1)
        timeOffset = info.timeOffset ?? 0
    }

    /// The segments that intersect the period, in order. A dynamic manifest has those of a `SegmentTimeline`, and those of
    /// equal duration that are complete and in the time shift buffer. Templates need the present time for that.
    ///
    /// Throws `.malformed` with the name of the element, `.malformed("mediaPresentationDuration")` if the number of
    /// segments depends on an unknown end, and `.tooLarge("segments")` for more than `budget` segments. Segments
    /// outside of the period count too, because they take time. `budget` is reduced by their number. `window`: nil for a
    /// static manifest.
    static func segments(
        _ info: DASHSegments, start: Double, end: Double?, window: Window?, budget: inout Int
    ) throws(MediaError) -> [Segment] {
        var times = DASHTimes(info, start: start, end: end, limit: budget)
        if let timeline = info.timeline {
            try times.add(timeline, window: window)
        } else if let window {
            try times.addAvailable(window)
        } else {
            try times.addRegular()
        }
        budget -= times.count + times.emptyCount
        return times.segments
    }

    /// Adds segments of equal duration.
    private mutating func addRegular() throws(MediaError) {
        let first = info.startNumber ?? 1
        if info.duration == nil {
            // Without a duration there is only one segment.
            guard info.kind == .template || info.urls.count == 1 else {
                throw .malformed("SegmentList", offset: info.offset)
            }
            guard let end else { throw .malformed("mediaPresentationDuration", offset: info.offset) }
            count = 1
            if limit < 1 { throw .tooLarge("segments") }
            if end > start { segments = [Segment(number: first, time: timeOffset, index: 0, span: start..<end)] }
            return
        }
        let duration = info.duration ?? 1
        var total = Double.infinity
        // The tolerance avoids an additional segment because of rounding errors.
        if let end { total = max(0, ((end - start) * timescale / Double(duration) - 1e-6).rounded(.up)) }
        if info.kind == .list { total = min(total, Double(info.urls.count)) }
        if let last = info.endNumber { total = min(total, max(0, Double(last) - Double(first) + 1)) }
        guard total.isFinite else { throw .malformed("mediaPresentationDuration", offset: info.offset) }
        guard total <= Double(limit) else { throw .tooLarge("segments") }
        var time = timeOffset
        for index in 0..<Int(total) {
            try add(number: first, offset: Int64(index), time: time, duration: duration, at: info.offset)
            time = try Self.sum(time, duration, at: info.offset)
        }
    }

    /// Adds the segments of equal duration of a dynamic manifest that end at or before the live edge or the end of the
    /// period, and after the beginning of the time shift buffer. Of a list without a known edge all are added.
    private mutating func addAvailable(_ window: Window) throws(MediaError) {
        guard let duration = info.duration, let edge = window.edge ?? (info.kind == .list ? .infinity : nil) else {
            return
        }
        let (first, seconds) = (info.startNumber ?? 1, Double(duration) / timescale)
        var total = ((edge - start) / seconds + 1e-6).rounded(.down)
        if let end, edge >= end { total = ((end - start) / seconds - 1e-6).rounded(.up) }
        if info.kind == .list { total = min(total, Double(info.urls.count)) }
        if let last = info.endNumber { total = min(total, Double(last) - Double(first) + 1) }
        // Without a known edge the beginning of the window is unknown too.
        let depth = window.edge == nil ? nil : window.depth
        let oldest = depth.map { max(0, ((edge - $0 - start) / seconds).rounded(.down)) } ?? 0
        guard oldest < total else { return }
        guard total - oldest <= Double(limit) else { throw .tooLarge("segments") }
        for index in Int64(saturating: oldest)..<Int64(saturating: total) {
            let (offset, overflow) = index.multipliedReportingOverflow(by: duration)
            guard !overflow else { throw .malformed("S", offset: info.offset) }
            let time = try Self.sum(timeOffset, offset, at: info.offset)
            try add(
                number: first, offset: index, time: time, duration: duration, at: info.offset, index: Int(index))
        }
    }

    /// Adds the segments of a `SegmentTimeline`.
    private mutating func add(_ timeline: [DASHSegments.Entry], window: Window?) throws(MediaError) {
        var time: Int64 = 0
        var first = info.startNumber ?? 1
        var offset: Int64 = 0
        for (index, entry) in timeline.enumerated() {
            time = entry.time ?? time
            if let number = entry.number { (first, offset) = (number, 0) }
            let next = index + 1 < timeline.count ? timeline[index + 1] : nil
            let repetitions = try repetitions(of: entry, at: time, next: next, window: window)
            if repetitions < 0 { emptyCount += 1 }
            guard repetitions < limit - count - emptyCount else { throw .tooLarge("segments") }
            var remaining = repetitions
            while remaining >= 0 {
                if info.kind == .list, count >= info.urls.count { return }
                try add(number: first, offset: offset, time: time, duration: entry.duration, at: entry.offset)
                time = try Self.sum(time, entry.duration, at: entry.offset)
                offset += 1
                remaining -= 1
            }
        }
    }

    /// The number of repetitions of an entry. A negative one extends to the next entry or to the end of the period; in
    /// a dynamic manifest without that end to the last complete segment, if the present time is known. -1: the entry begins
    /// after the end and has no segment.
    private func repetitions(
        of entry: DASHSegments.Entry, at time: Int64, next: DASHSegments.Entry?, window: Window?
    ) throws(MediaError) -> Int64 {
        guard entry.repetitions < 0 else { return entry.repetitions }
        let units: Double
        if let next {
            guard let limit = next.time else { throw .malformed("S@r", offset: entry.offset) }
            units = Double(limit) - Double(time)
        } else if let end {
            units = (end - start) * timescale - (Double(time) - Double(timeOffset))
        } else if let window {
            guard let edge = window.edge else { return 0 }
            let available = (edge - start) * timescale - (Double(time) - Double(timeOffset))
            return max(0, Int64(saturating: (available / Double(entry.duration) + 1e-6).rounded(.down))) - 1
        } else {
            throw .malformed("mediaPresentationDuration", offset: entry.offset)
        }
        return max(0, Int64(saturating: (units / Double(entry.duration) - 1e-6).rounded(.up))) - 1
    }

    /// Adds a segment, unless it is outside of the period. Parts outside of the period are cut off.
    private mutating func add(
        number: Int64, offset: Int64, time: Int64, duration: Int64, at position: Int64, index: Int? = nil
    ) throws(MediaError) {
        defer { count += 1 }
        let number = try Self.sum(number, offset, at: position)
        // Both times are not negative, so that the difference cannot overflow.
        let from = start + Double(time - timeOffset) / timescale
        let to = from + Double(duration) / timescale
        guard to <= MediaText.timeLimit else { throw .malformed("S", offset: position) }
        let span = (max(from, start), min(to, end ?? to))
        guard span.0 < span.1 else { return }
        segments.append(Segment(number: number, time: time, index: index ?? count, span: span.0..<span.1))
    }

    /// The sum of two numbers. Throws `.malformed("S")` if it overflows.
    private static func sum(_ left: Int64, _ right: Int64, at position: Int64) throws(MediaError) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        guard !overflow else { throw .malformed("S", offset: position) }
        return sum
    }
}
