import CacheCore

/// Piecewise linear map from presentation times to byte positions, for formats without a complete index.
struct MediaTimeMap: Hashable, Sendable {
    struct Point: Hashable, Sendable {
        var position: Int64
        /// In seconds from the beginning of the presentation.
        var time: Double
    }

    /// At least one point; positions and times ascend strictly.
    private(set) var points: [Point]

    /// Keeps the points whose positions and times ascend from the first to the last point.
    init(first: Point, between: some Sequence<Point>, last: Point) {
        points = [first]
        for point in between.sorted(by: { $0.position < $1.position }) {
            guard point.time > points[points.count - 1].time, point.position > points[points.count - 1].position,
                point.time < last.time, point.position < last.position
            else { continue }
            points.append(point)
        }
        let end = points[points.count - 1]
        if last.time > end.time, last.position > end.position { points.append(last) }
    }

    /// The last point at or before `time`, and the first point behind it; nil outside of the map.
    func neighbours(of time: Double) -> (before: Point, after: Point)? {
        var low = 0
        var high = points.count
        while low < high {
            let middle = (low + high) / 2
            if points[middle].time > time { high = middle } else { low = middle + 1 }
        }
        return low > 0 && low < points.count ? (points[low - 1], points[low]) : nil
    }

    /// The position at `time`, clamped to the map.
    func position(at time: Double) -> Int64 {
        guard let (before, after) = neighbours(of: time) else {
            return time < points[0].time ? points[0].position : points[points.count - 1].position
        }
        let share = (time - before.time) / (after.time - before.time)
        let position = before.position + Int64(saturating: share * Double(after.position - before.position))
        return min(max(position, before.position), after.position)
    }

    /// The time at `position`, clamped to the map.
    func time(at position: Int64) -> Double {
        guard let index = points.lastIndex(where: { $0.position <= position }) else { return points[0].time }
        guard index + 1 < points.count else { return points[index].time }
        let (before, after) = (points[index], points[index + 1])
        let share = Double(position - before.position) / Double(after.position - before.position)
        return before.time + share * (after.time - before.time)
    }

    /// Pieces of about one second, at most `limit`; they cover the map.
    ///
    /// - Parameters:
    ///   - seconds: the uncertainty of times; each piece contains the bytes of so many seconds before and behind it.
    ///   - bytes: the uncertainty of positions, added likewise.
    func pieces(limit: Int, seconds: Double, bytes: Int64) -> [MediaIndex.Piece] {
        let (first, last) = (points[0], points[points.count - 1])
        let total = last.time - first.time
        guard total > 0, total.isFinite, last.position > first.position else { return [] }
        let count = Int(min(max(1, total.rounded(.up)), Double(max(1, limit))))
        let length = total <= Double(count) ? 1 : total / Double(count)
        return (0..<count).map { index in
            let start = first.time + Double(index) * length
            let end = index == count - 1 ? last.time : start + length
            let lower = index == 0 ? first.position : max(first.position, position(at: start - seconds) - bytes)
            let upper = index == count - 1 ? last.position : min(last.position, position(at: end + seconds) + bytes)
            return MediaIndex.Piece(time: start..<max(start, end), bytes: lower..<max(lower, upper))
        }
    }
}
