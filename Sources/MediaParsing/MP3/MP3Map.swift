import CacheCore

/// The times of an MP3 file with a variable bit rate and without a header: counted frames at the beginning, and an estimate
/// behind them.
struct MP3Map: Hashable, Sendable {
    /// The bytes that are fetched behind an estimated position.
    private static let margin: Int64 = 160 << 10
    /// The length of a read.
    private static let windowLength: Int64 = 256 << 10
    /// The largest number of fetches.
    private static let fetchLimit = 16
    /// The uncertainty of the estimate.
    private static let uncertainSeconds = 1.0
    private static let uncertainBytes: Int64 = 16 << 10

    private let stream: MP3FrameHeader
    private let estimate: MediaTimeMap
    private let limit: Int
    /// One point for each second of counted frames; the last one is the end of the counted frames.
    private var counted: [MediaTimeMap.Point]

    init(_ run: MP3Run, _ estimate: MediaTimeMap, limit: Int) {
        stream = run.first
        self.estimate = estimate
        self.limit = limit
        counted = [.init(position: run.position, time: 0)]
    }

    /// Counts the frames up to the end of a span. The bytes from the beginning of the file on are fetched: players read
    /// them too.
    mutating func refine(for time: Range<Double>, _ source: MediaSource) async throws(MediaError) {
        let end = estimate.points[estimate.points.count - 1].position
        var fetchedEnd: Int64 = 0
        var fetchCount = 0
        var last = counted[counted.count - 1]
        while last.time < time.upperBound, last.position < end {
            let bound = min(end, last.position + Self.windowLength)
            if bound > fetchedEnd {
                let ahead = ByteRange(offset: max(bound, map.position(at: time.upperBound)), length: Self.margin)
                let next = min(end, ahead.upperBound)
                fetchCount += 1
                guard fetchCount <= Self.fetchLimit else {
                    throw .tooLarge("The frames up to the time need more than \(Self.fetchLimit) requests")
                }
                try await source.fetch(fetchedEnd..<next)
                fetchedEnd = next
            }
            let bytes = MediaBytes(offset: last.position, bytes: try await source.read(last.position..<bound)[...])
            guard count(bytes, until: time.upperBound) || bound < end else { return }
            let next = counted[counted.count - 1]
            guard next.position > last.position else { return }
            last = next
        }
    }

    /// Counts the frames that are completely in `bytes`, up to a time. Returns whether there was one; damaged bytes are
    /// skipped.
    private mutating func count(_ bytes: MediaBytes, until end: Double) -> Bool {
        var last = counted.removeLast()
        if counted.isEmpty { counted.append(last) }
        let first = last.position
        while last.time < end {
            guard let header = MP3FrameHeader(bytes, at: last.position), header.continues(stream) else {
                guard let run = MP3Run(in: bytes, from: last.position + 1, of: stream) else { break }
                last.position = run.position
                continue
            }
            guard last.position + header.length <= bytes.end else { break }
            last.position += header.length
            last.time += header.duration
            if last.time >= counted[counted.count - 1].time + 1 { counted.append(last) }
        }
        if last != counted[counted.count - 1] { counted.append(last) }
        return last.position > first
    }

    /// The counted points, and the estimate with its remaining duration behind them.
    private var map: MediaTimeMap {
        let last = counted[counted.count - 1]
        let shift = last.time - estimate.time(at: last.position)
        let rest = estimate.points.filter { $0.position > last.position }
            .map { MediaTimeMap.Point(position: $0.position, time: $0.time + shift) }
        return MediaTimeMap(first: counted[0], between: counted.dropFirst() + rest.dropLast(), last: rest.last ?? last)
    }

    /// The counted and the estimated seconds.
    var duration: Double? {
        let end = map.points[map.points.count - 1].time
        return end > 0 ? end : nil
    }

    /// Pieces of about one second. Those of counted frames are exact.
    var pieces: [MediaIndex.Piece] {
        let last = counted[counted.count - 1]
        return map.pieces(limit: limit, seconds: Self.uncertainSeconds, bytes: Self.uncertainBytes).map { piece in
            guard piece.time.upperBound <= last.time else { return piece }
            let end = map.position(at: piece.time.upperBound) + 2048
            return .init(
                time: piece.time,
                bytes: piece.bytes.lowerBound..<max(piece.bytes.lowerBound, min(end, piece.bytes.upperBound)))
        }
    }
}
