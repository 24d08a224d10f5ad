import CacheCore

/// Measured times of a transport stream; it has no index. The times at the ends of a span are measured when a span is
/// needed; times between two measurements are interpolated.
struct TransportStreamMap: Hashable, Sendable {
    /// A time stamp of the reference stream.
    struct Mark: Hashable, Sendable {
        var position: Int64
        var ticks: Int64
    }

    private static let probeLength: Int64 = 16 << 10
    private static let longestProbe: Int64 = 128 << 10
    /// The largest number of measurements for one time.
    private static let probesPerTime = 6
    /// The largest number of measurements in cached bytes at once.
    private static let probesOfCache = 32
    /// Between measurements with a smaller distance in bytes nothing is measured.
    private static let probeDistance: Int64 = 512 << 10
    /// A measurement so close to a time in seconds is sufficient.
    private static let precision = 0.5
    /// Marks with a smaller distance in seconds are omitted.
    private static let markDistance = 0.25

    /// The position of the first packet.
    let start: Int64
    /// The length of the file.
    let length: Int64
    let packetSize: Int64
    /// The PID of the stream with the time stamps, and of the program clock.
    let reference: Int
    let clockPID: Int?
    /// The difference between the time stamp of the reference stream and the program clock at the same position.
    let clockDelay: Int64
    /// The first presentation time in units of 90 kHz.
    let origin: Int64
    /// The largest difference between the times of streams at the same position in seconds.
    let spread: Double
    /// The largest number of pieces.
    let limit: Int

    /// Ascending by position.
    private var marks: [Mark] = []
    /// The time from the last mark to the end of the last frame in seconds.
    private var rest = 0.0
    private(set) var times = MediaTimeMap(
        first: .init(position: 0, time: 0), between: [], last: .init(position: 0, time: 0))

    init(
        start: Int64, length: Int64, packetSize: Int64, reference: Int, clockPID: Int?, clockDelay: Int64,
        origin: Int64, spread: Double, limit: Int
    ) {
        self.start = start
        self.length = length
        self.packetSize = packetSize
        self.reference = reference
        self.clockPID = clockPID
        self.clockDelay = clockDelay
        self.origin = origin
        self.spread = spread
        self.limit = limit
    }

    /// The duration in seconds.
    var duration: Double { times.points[times.points.count - 1].time }

    /// The pieces of each stream, which last about one second.
    var pieces: [MediaIndex.Piece] { times.pieces(limit: limit, seconds: spread, bytes: 4096) }

    /// The times of the reference stream; without any, those of the program clock.
    func marks(_ scan: TransportStreamScan) -> [Mark] {
        let stamps = scan.stamps.filter { $0.pid == reference }
        if !stamps.isEmpty { return stamps.map { Mark(position: $0.position, ticks: $0.decoding) } }
        return scan.clocks.filter { $0.pid == clockPID }.map {
            Mark(position: $0.position, ticks: $0.decoding + clockDelay)
        }
    }

    /// Adds measurements.
    mutating func add(_ added: [Mark]) {
        marks = (marks + added).sorted { $0.position < $1.position }
        var points: [MediaTimeMap.Point] = []
        var (ticks, time) = (origin, 0.0)
        for mark in marks {
            time += TransportStreamClock.seconds(from: ticks, to: mark.ticks)
            ticks = mark.ticks
            if time - (points.last?.time ?? 0) >= Self.markDistance {
                points.append(.init(position: mark.position, time: time))
            }
        }
        times = MediaTimeMap(
            first: .init(position: 0, time: 0), between: points,
            last: .init(position: length, time: time + rest))
    }

    /// Sets the end of the presentation from the last time stamps of all streams. Throws `.unsupported` if it is not later
    /// than the beginning.
    mutating func end(behind stamps: [Int64]) throws(MediaError) {
        let ticks = marks.last?.ticks ?? origin
        let last = stamps.map { TransportStreamClock.seconds(from: ticks, to: $0) }.max() ?? 0
        rest = max(0, last) + 0.04  // the last frame
        add([])
        guard duration > 0.04, length > 0 else { throw .unsupported("MPEG-TS with discontinuous time stamps") }
    }

    /// Measures the time at a position. Returns whether a time stamp was found near it.
    @discardableResult
    mutating func measure(at position: Int64, _ source: MediaSource) async throws(MediaError) -> Bool {
        for length in [Self.probeLength, Self.longestProbe] {
            let range = ByteRange(offset: position, length: length).clamped(to: 0..<self.length)
            if let mark = try await marks(in: range, source).first {
                add([mark])
                return true
            }
        }
        return false
    }

    private func marks(in range: ByteRange, _ source: MediaSource) async throws(MediaError) -> [Mark] {
        var scan = TransportStreamScan(from: range.lowerBound)
        scan.add(MediaBytes(offset: range.lowerBound, bytes: try await source.read(range)[...]), size: packetSize)
        return marks(scan)
    }

    /// Measures the times at the ends of a span, by interpolation search.
    mutating func refine(for span: Range<Double>, _ source: MediaSource) async throws(MediaError) {
        for time in [span.lowerBound, span.upperBound] {
            for _ in 0..<Self.probesPerTime {
                guard let (before, after) = times.neighbours(of: time),
                    min(time - before.time, after.time - time) > Self.precision,
                    after.position - before.position > Self.probeDistance
                else { break }
                let least = before.position + Self.probeLength
                let position = min(max(times.position(at: time), least), after.position - Self.longestProbe)
                guard try await measure(at: position, source) else { break }
            }
        }
    }

    /// Measures the times at the ends of cached ranges.
    mutating func explore(_ cached: ByteRangeSet, _ source: MediaSource) async throws(MediaError) {
        var count = 0
        for run in cached.runs where run.length >= Self.longestProbe && count < Self.probesOfCache {
            for position in [run.lowerBound, run.upperBound - Self.longestProbe] where position >= start {
                let range = ByteRange(offset: position, length: Self.longestProbe)
                guard !marks.contains(where: { range.contains($0.position) }) else { continue }
                let found = try await marks(in: range, source)
                guard let mark = position == run.lowerBound ? found.first : found.last else { continue }
                add([mark])
                count += 1
            }
        }
    }
}
