import CacheCore

/// The clusters of a Matroska file as points of time, and the pieces between them (RFC 9559 §5.1.3).
///
/// Cues, or the first cluster alone in a file without cues, give the first points. ``refine(for:_:)`` adds those near the
/// end of a span, from bytes that the span needs anyway.
package struct MatroskaMap: Hashable, Sendable {
    /// The beginning of bytes whose times are known.
    struct Point: Hashable, Sendable {
        var position: Int64
        /// The time of the first cue or of the cluster in seconds.
        var time: Double
        /// The time of the last cue of the cluster in seconds.
        var latest: Double
        /// Whether `time` is that of the first block; otherwise earlier blocks can precede it.
        var isStart: Bool
        /// Whether a cluster begins here; otherwise the point is a block inside of a cluster.
        var isCluster = true
    }

    /// The seconds by which blocks of other tracks can precede the first video block of a cluster: streams are
    /// interleaved by decoding time, which is earlier than the presentation time.
    static let reordering = 0.25
    /// The usual longest duration of a cluster in seconds, and the longest one with ticks of 1 ms (RFC 9559 §10.2).
    private static let usualDuration = 5.0
    private static let longestDuration = 33.0
    /// Shorter pieces are not divided, in seconds and bytes.
    private static let shortest = 1.0
    private static let smallest: Int64 = 64 << 10
    /// The bytes behind the end of a span that are fetched with it: its slack, and an allowance for the estimate.
    private static let margin: Int64 = 128 << 10
    /// The largest number of points, and of cached bytes that one call of ``explore(_:_:)`` reads.
    private static let pointLimit = 400_000
    private static let exploredBytes: Int64 = 256 << 20
    /// The first fetch in a file whose bit rate is unknown.
    private static let firstFetch: Int64 = 512 << 10

    /// Ascending by position; the first one is the first cluster.
    private(set) var points: [Point]
    /// The position behind the last cluster, at most the length of the file.
    let end: Int64
    let clock: MatroskaClock
    /// Whether the file has cues; otherwise players read it from its beginning.
    let isCued: Bool
    /// The duration that the file states, or that was found at its end; nil: unknown.
    private(set) var duration: Double?
    /// The largest number of pieces of a track.
    private let limit: Int

    init(_ points: [Point], end: Int64, clock: MatroskaClock, isCued: Bool, duration: Double?, limit: Int) {
        self.points = points
        self.end = end
        self.clock = clock
        self.isCued = isCued
        self.duration = duration
        self.limit = limit
    }

    /// Divides the piece that contains the end of a span, and in a file with cues that of the first seconds, which players
    /// read when they open it. The bytes of the span up to there are fetched, and their clusters and blocks are parsed.
    mutating func refine(for time: Range<Double>, _ source: MediaSource) async throws(MediaError) {
        let opening = MediaIndex.openingSeconds(of: .matroska)
        if isCued, time.lowerBound > opening {
            try await refineEnd(of: 0..<opening, source)
        }
        try await refineEnd(of: time, source)
    }

    private mutating func refineEnd(of time: Range<Double>, _ source: MediaSource) async throws(MediaError) {
        guard let first = lastCluster(at: time.upperBound), !isKnown(time.upperBound) else { return }
        let start = points[first]
        guard duration == nil || end - start.position > Self.smallest else { return }
        let next = points[(first + 1)...].first { $0.time > time.upperBound }
        var estimate = ByteRange(offset: start.position, length: Self.firstFetch).upperBound
        if let nextTime = next?.time ?? duration, nextTime > start.time {
            let share = min(1, max(0, (time.upperBound - start.time) / (nextTime - start.time)))
            estimate = start.position + Int64(saturating: share * Double((next?.position ?? end) - start.position))
        }
        let seekTime = time.lowerBound - MediaIndex.reorderingAllowance
        let needed = isCued ? lastCluster(at: seekTime).map { points[$0].position } : points.first?.position
        let lead = max(0, (needed ?? start.position) - MediaIndex.leadBytes)
        var walk = MatroskaWalk(source: source, clock: clock, limit: end, margin: Self.margin)
        try await walk.fetch(lead..<max(lead, min(end, estimate)))
        try await walk.run(from: start, until: time.upperBound)
        add(walk, endsFile: walk.reachesLimit)
    }

    /// Whether a piece begins closely behind a time, or the media ends there.
    private func isKnown(_ time: Double) -> Bool {
        if let duration, duration - time < Self.shortest { return true }
        return points.contains { !$0.isCluster && $0.time >= time && $0.time - time < Self.shortest }
    }

    /// Divides pieces whose first bytes only are cached. `source` reads cached bytes.
    mutating func explore(_ cached: ByteRangeSet, _ source: MediaSource) async throws(MediaError) {
        var rest = Self.exploredBytes
        for run in cached.runs where rest > 0 {
            guard let first = points.lastIndex(where: { $0.isCluster && $0.position < run.upperBound }),
                run.contains(points[first].position)
            else { continue }
            let next = points[(first + 1)...].first { $0.isCluster }?.position ?? end
            let walkEnd = min(next, run.upperBound, points[first].position + rest)
            rest -= walkEnd - points[first].position
            var walk = MatroskaWalk(source: source, clock: clock, limit: walkEnd, margin: 0)
            try await walk.run(from: points[first], until: .infinity)
            add(walk, endsFile: walk.reachesLimit && walkEnd == end)
        }
    }

    private mutating func add(_ walk: MatroskaWalk, endsFile: Bool) {
        guard points.count + walk.clusters.count < Self.pointLimit else { return }
        var known = Dictionary(points.map { ($0.position, $0) }) { first, _ in first }
        let boundary = walk.boundary.flatMap { $0.position < end && known[$0.position]?.isCluster != true ? $0 : nil }
        for point in walk.clusters + [boundary].compactMap(\.self) {
            // The timestamp of a cluster is more exact than its first cue.
            let latest = known[point.position].map { max($0.latest, $0.time) } ?? point.latest
            known[point.position] = point
            known[point.position]?.latest = latest
        }
        points = known.values.sorted { $0.position < $1.position }
        if endsFile, duration == nil, walk.latest > 0 { duration = walk.latest }
    }

    /// The index of the last cluster that begins at or before a time.
    private func lastCluster(at time: Double) -> Int? {
        points.lastIndex { $0.isCluster && $0.time <= time } ?? points.indices.first
    }

    /// The pieces between points, ascending by position; adjacent ones are merged beyond the limit. The last piece has
    /// no end of time while the duration of a file without cues is unknown.
    ///
    /// - Parameter precedesVideo: whether the track is interleaved with video. Then its last blocks of a cluster end
    ///   before the next cluster begins, and the pieces do not overlap at a sync time of the video.
    func pieces(precedesVideo: Bool) -> [MediaIndex.Piece] {
        let step = max(1, (points.count + limit - 1) / limit)
        return stride(from: 0, to: points.count, by: step).map { index in
            let point = points[index]
            let nextIndex = index + step
            let latest = points[index..<min(nextIndex, points.count)].reduce(0) { max($0, $1.latest) }
            let nextPosition = nextIndex < points.count ? points[nextIndex].position : max(point.position, end)
            let nextTime =
                nextIndex < points.count
                ? points[nextIndex].time - (precedesVideo ? Self.reordering : 0)
                : duration ?? (isCued ? estimatedEnd(bytes: nextPosition - point.position) : .infinity)
            let start = index == 0 ? 0 : max(0, point.time - lead(of: point, after: points[index - 1]))
            return MediaIndex.Piece(
                time: start..<max(start, nextTime, latest), bytes: point.position..<max(point.position, nextPosition))
        }
    }

    /// The seconds by which the first block of a cluster can precede its time.
    private func lead(of point: Point, after previous: Point) -> Double {
        point.isStart
            ? Self.reordering : max(Self.reordering, min(Self.usualDuration, point.time - previous.time))
    }

    /// The end of a presentation of unknown duration, by the average rate before its last cluster of so many `bytes`.
    private func estimatedEnd(bytes: Int64) -> Double {
        guard let first = points.first, let last = points.last else { return 0 }
        let seconds = last.time - first.time
        guard seconds > 0, last.position > first.position else { return last.time + Self.longestDuration }
        let rate = Double(last.position - first.position) / seconds
        return last.time + min(Self.longestDuration, max(1, 2 * Double(bytes) / rate))
    }
}
