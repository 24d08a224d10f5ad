/// How far ahead of one reader bytes may be requested: its exposure, which is the waste if the reader hangs up.
///
/// Stated demand (a client range of bounded size, a prefetch) has the largest exposure from the start. A reader without a
/// stated end begins with a small exposure. It grows with the bytes that the reader has passed, and is bounded by its pace,
/// as read-ahead in a file system.
struct ReadAhead: Sendable {
    enum Demand: Hashable, Sendable {
        /// The reader named its range, and the range fits into one window of the largest size; or the reader is a prefetch.
        case stated
        /// No stated end, but the asset fits into one window of the largest size.
        case smallAsset
        /// No stated end: the reader may hang up anywhere.
        case openEnded
    }

    var demand = Demand.openEnded
    /// The reader's pace in bytes per second; nil before the first measurement.
    private(set) var bytesPerSecond: Double?
    /// The first exposure, and the first window over HTTP/2, in bytes.
    private let sizes: FillLedger.Settings
    /// The reader's position when it began to read in sequence.
    private var beginning: Int64?
    /// The two latest measuring points; the pace is measured from the older one.
    private var marks: (older: Mark, newer: Mark)?

    private struct Mark {
        let position: Int64
        let time: Duration
    }

    /// The bytes that the sockets towards a client take at once, whatever the client's pace.
    private static let socketBytes: Int64 = 256 << 10
    /// The shortest span over which a pace is measured.
    private static let leastSpan = 0.25
    /// Measuring points are at least this far apart.
    private static let markSpan = 1.0
    /// The exposure holds at least so many seconds of the reader's pace once it has grown.
    private static let exposedSeconds = 0.05
    /// A window over HTTP/2 holds at most so many seconds of the reader's pace.
    private static let windowSeconds = 1.0
    /// Round trips between the request of a window and the moment when it is needed.
    private static let roundTripsAhead = 1.5

    init(sizes: FillLedger.Settings) { self.sizes = sizes }

    /// The reader stands at `position`; to be called whenever it moves.
    mutating func moved(to position: Int64, at now: Duration) {
        beginning = beginning ?? position
        let mark = Mark(position: position, time: now)
        guard let marks else { return marks = (mark, mark) }
        measure(mark, since: marks.older)
        if (now - marks.newer.time).inSeconds >= Self.markSpan { self.marks = (marks.newer, mark) }
    }

    private mutating func measure(_ mark: Mark, since older: Mark) {
        let seconds = (mark.time - older.time).inSeconds
        guard seconds >= Self.leastSpan, let beginning else { return }
        let inSockets = older.position == beginning ? Self.socketBytes : 0
        bytesPerSecond = Double(max(0, mark.position - older.position - inSockets)) / seconds
    }

    /// The reader reads elsewhere: nothing is known of it any more.
    mutating func sought() {
        let demand = demand
        self = ReadAhead(sizes: sizes)
        self.demand = demand
    }

    /// The bytes that the reader at `position` has read in sequence.
    private func passed(at position: Int64) -> Int64 { position - (beginning ?? position) }

    /// How many bytes beyond the reader at `position` may be requested.
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

    /// Windows of slow readers shrink to this.
    private static let leastWindowBytes: Int64 = 256 << 10

    /// `bytes`, at most what the reader passes in `seconds`, at least `least`, at most the largest window.
    private func bounded(_ bytes: Int64, bySeconds seconds: Double, least: Int64) -> Int64 {
        let pace = bytesPerSecond.map { Int64(min($0 * seconds, Double(sizes.largestWindowBytes))) } ?? .max
        return min(max(least, min(bytes, pace)), sizes.largestWindowBytes)
    }

    /// A window is requested once fewer bytes than this lie between the reader and the window: the reader's pace during
    /// 1.5 round trips, and before a pace is known the largest window.
    func lead(at position: Int64, roundTrip: Duration) -> Int64 {
        let most = 2 * sizes.largestWindowBytes
        let flying = bytesPerSecond.map {
            Int64(min($0 * roundTrip.inSeconds * Self.roundTripsAhead, Double(most)))
        }
        guard demand == .openEnded else { return min(max(flying ?? 0, sizes.largestWindowBytes), most) }
        let passed = passed(at: position)
        return max(sizes.firstExposureBytes, min(flying ?? passed, passed, most))
    }

    /// How long until the reader has passed `bytes`; zero while its pace is not known.
    func time(for bytes: Int64) -> Duration {
        guard let bytesPerSecond, bytesPerSecond >= 1, bytes > 0 else { return .zero }
        return .seconds(min(Double(bytes) / bytesPerSecond, 60))
    }
}
