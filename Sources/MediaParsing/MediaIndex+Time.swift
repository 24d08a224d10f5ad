package import CacheCore

extension MediaIndex {
    /// The largest number of pairs of a piece and a part in ``bytes(inPartsOfTime:)``.
    private static let pairLimit = 1_000_000

    /// The bytes of all tracks in `count` parts of the duration. A piece belongs to each part that it overlaps.
    ///
    /// - Returns: the times in seconds, ascending, and the bytes; empty without a duration; nil if the pieces of a
    ///   malformed file overlap too many parts.
    package func bytes(inPartsOfTime count: Int) -> [(time: Range<Double>, bytes: ByteRangeSet)]? {
        let end = duration ?? tracks.flatMap(\.pieces).map(\.time.upperBound).max() ?? 0
        guard end > 0, end.isFinite, count > 0 else { return [] }
        let width = end / Double(count)
        var runs = [[ByteRange]](repeating: [], count: count)
        var pairCount = 0
        for piece in tracks.lazy.flatMap(\.pieces) where piece.time.lowerBound < end && piece.time.upperBound > 0 {
            let first = min(count - 1, Int(max(0, piece.time.lowerBound) / width))
            let last = min(count - 1, max(first, Int((min(end, piece.time.upperBound) / width).rounded(.up)) - 1))
            pairCount += last - first + 1
            guard pairCount <= Self.pairLimit else { return nil }
            for part in first...last { runs[part].append(piece.bytes) }
        }
        return runs.enumerated().map { number, runs in
            (Double(number) * width..<Double(number + 1) * width, ByteRangeSet(runs))
        }
    }
}
