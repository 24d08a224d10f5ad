import CacheCore

/// Ascending lists of disjoint time spans in seconds.
package enum TimeSpans {
    /// The largest gap that counts as none: playlists state durations in milliseconds.
    private static let tolerance = 0.002

    /// The times that are in one of the lists at least.
    package static func union(_ left: [Range<Double>], _ right: [Range<Double>]) -> [Range<Double>] {
        joined(left + right)
    }

    /// The times that are in both lists.
    package static func intersection(_ left: [Range<Double>], _ right: [Range<Double>]) -> [Range<Double>] {
        var result: [Range<Double>] = []
        var (leftIndex, rightIndex) = (0, 0)
        while leftIndex < left.count, rightIndex < right.count {
            let common = left[leftIndex].clamped(to: right[rightIndex])
            if !common.isEmpty { result.append(common) }
            if left[leftIndex].upperBound < right[rightIndex].upperBound { leftIndex += 1 } else { rightIndex += 1 }
        }
        return result
    }

    /// The times of a span for which no file is missing: the rule by which a playlist plays from the disk.
    ///
    /// - Parameter missing: the times of the missing files, in any order.
    package static func playable(in span: Range<Double>, missing: [Range<Double>]) -> [Range<Double>] {
        var spans: [Range<Double>] = []
        var start = span.lowerBound
        for time in joined(missing) where time.upperBound > span.lowerBound && time.lowerBound < span.upperBound {
            if time.lowerBound - start > tolerance { spans.append(start..<time.lowerBound) }
            start = max(start, time.upperBound)
        }
        if span.upperBound - start > tolerance { spans.append(start..<span.upperBound) }
        return spans
    }

    /// The spans in order, joined where they touch. Empty spans are dropped.
    private static func joined(_ spans: [Range<Double>]) -> [Range<Double>] {
        var joined: [Range<Double>] = []
        for span in spans.sorted(by: { $0.lowerBound < $1.lowerBound }) where !span.isEmpty {
            if let last = joined.last, span.lowerBound - last.upperBound <= tolerance {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, span.upperBound)
            } else {
                joined.append(span)
            }
        }
        return joined
    }
}
