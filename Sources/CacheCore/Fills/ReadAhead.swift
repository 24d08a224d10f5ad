/// Computes the exposure of one reader: the number of bytes ahead of it that may be requested, which are wasted if the
/// reader disconnects.
///
/// Stated demand (a client range of bounded size, a prefetch) has the largest exposure from the start. A reader without
/// a stated end begins with a small exposure. The exposure grows with the bytes that the reader has passed and is
/// bounded by its pace, as read-ahead in a file system.
struct ReadAhead: Sendable {
    /// The kind of demand.
    enum Demand: Hashable, Sendable {
        /// The range fits into one window of the largest size, or the reader is a prefetch.
        case stated
        /// No stated end, but the asset fits into one window of the largest size.
        case smallAsset
        /// No stated end: the reader may disconnect anywhere.
        case openEnded
    }

    var demand = Demand.openEnded
    /// The reader's pace in bytes per second; nil before the first measurement.
    private(set) var bytesPerSecond: Double?
    /// The limits of the origin: first exposure and window sizes, in bytes.
    private let sizes: FillLedger.Settings
    /// The position where the sequential read began; nil before the first move.
    private var beginning: Int64?
    /// The two latest measuring points. The pace is measured from the older one.
    private var marks: (older: Mark, newer: Mark)?

    /// A measuring point: a position of the reader and its uptime.
    private struct Mark {
        let position: Int64
        let time: Duration
    }

    /// The number of bytes that the sockets to a client accept at once, regardless of the client's pace.
    private static let socketBytes: Int64 = 256 << 10
    /// The shortest time over which a pace is measured, in seconds.
    private static let leastSpan = 0.25
    /// The shortest time between measuring points, in seconds.
    private static let markSpan = 1.0
    /// The pace bounds the exposure to the bytes of so many seconds, or of 1.5 round trips if that is more.
    private static let exposedSeconds = 0.05
    /// The pace bounds a window over HTTP/2 to the bytes of so many seconds.
    private static let windowSeconds = 1.0
    /// The number of round trips between the request of a window and the time when the reader needs it.
    private static let roundTripsAhead = 1.5

    init(sizes: FillLedger.Settings) { self.sizes = sizes }

    /// Records the reader's position. Call it whenever the reader moves.
    mutating func moved(to position: Int64, at now: Duration) {
        beginning = beginning ?? position
        let mark = Mark(position: position, time: now)
        guard let marks else { return marks = (mark, mark) }
        measure(mark, since: marks.older)
        if (now - marks.newer.time).inSeconds >= Self.markSpan { self.marks = (marks.newer, mark) }
    }

    /// Measures the pace since `older`. Bytes that only filled the sockets are not counted.
    private mutating func measure(_ mark: Mark, since older: Mark) {
        let seconds = (mark.time - older.time).inSeconds
        guard seconds >= Self.leastSpan, let beginning else { return }
        let inSockets = older.position == beginning ? Self.socketBytes : 0
        bytesPerSecond = Double(max(0, mark.position - older.position - inSockets)) / seconds
    }

    /// Resets the measurements after a seek; the demand stays.
    mutating func sought() {
        let demand = demand
        self = ReadAhead(sizes: sizes)
        self.demand = demand
    }

    /// The number of bytes that the reader at `position` has read in sequence.
    private func passed(at position: Int64) -> Int64 { position - (beginning ?? position) }

    /// The number of bytes from `position` on that may be requested.
    func exposure(at position: Int64, roundTrip: Duration) -> Int64 {
        let passed = passed(at: position)
        switch demand {
        case .stated: return sizes.largestWindowBytes
        case .smallAsset, .openEnded:
            let seconds = max(Self.exposedSeconds, roundTrip.inSeconds * Self.roundTripsAhead)
            return bounded(passed / 4, bySeconds: seconds, least: sizes.firstExposureBytes)
        }
    }

    /// The size of the next window where transfers cannot be paused (HTTP/2).
    func windowBytes(at position: Int64) -> Int64 {
        guard demand == .openEnded else { return sizes.largestWindowBytes }
        let passed = passed(at: position)
        let grown = max(passed, sizes.firstWindowBytes)
        return bounded(grown, bySeconds: Self.windowSeconds, least: min(sizes.firstWindowBytes, Self.leastWindowBytes))
    }

    /// The smallest window of a slow reader.
    private static let leastWindowBytes: Int64 = 256 << 10

    /// `bytes`, limited to the reader's pace during `seconds`, at least `least` and at most the largest window.
    private func bounded(_ bytes: Int64, bySeconds seconds: Double, least: Int64) -> Int64 {
        let pace = bytesPerSecond.map { Int64(min($0 * seconds, Double(sizes.largestWindowBytes))) } ?? .max
        return min(max(least, min(bytes, pace)), sizes.largestWindowBytes)
    }

    /// The distance in bytes to the next window below which it is requested: the reader's pace during 1.5 round trips.
    /// For bounded demand it is at least the largest window. For an open-ended read it is at least the first exposure
    /// and at most the bytes passed. It never exceeds two largest windows.
    func lead(at position: Int64, roundTrip: Duration) -> Int64 {
        let most = 2 * sizes.largestWindowBytes
        let flying = bytesPerSecond.map {
            Int64(min($0 * roundTrip.inSeconds * Self.roundTripsAhead, Double(most)))
        }
        guard demand == .openEnded else { return min(max(flying ?? 0, sizes.largestWindowBytes), most) }
        let passed = passed(at: position)
        return max(sizes.firstExposureBytes, min(flying ?? passed, passed, most))
    }

    /// The time until the reader has passed `bytes`, at most 60 s; zero if its pace is unknown.
    func time(for bytes: Int64) -> Duration {
        guard let bytesPerSecond, bytesPerSecond >= 1, bytes > 0 else { return .zero }
        return .seconds(min(Double(bytes) / bytesPerSecond, 60))
    }
}
