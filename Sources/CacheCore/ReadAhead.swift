/// How much is asked for at once ahead of one reader: little at first, more for a reader that proves to go on, as read-ahead
/// in a file system does.
///
/// A window holds about a second of its reader's pace, and never more than the reader has gone through: whoever comes to
/// wait for one does not wait long, and a reader who hangs up has not had much fetched in vain.
struct ReadAhead: Sendable {
    /// Bytes of the next window.
    private(set) var windowBytes: Int64
    /// Bytes of the window asked for last.
    private(set) var lastBytes: Int64
    /// How fast the reader goes on; nil while that is not known.
    private(set) var bytesPerSecond: Double?
    private let first: Int64
    private let most: Int64
    /// Where the reader began.
    private var beginning: Int64?
    /// From where, and since when, its pace is measured, and what takes that place next: so that a pace is that of two
    /// spans at most, and of no less than one.
    private var marks: (older: Mark, newer: Mark)?

    private struct Mark {
        let position: Int64
        let time: Duration
    }

    /// Windows of slow readers shrink to this.
    private static let leastBytes: Int64 = 64 << 10
    /// What the sockets on the way to a reader take at once, whatever its pace.
    private static let socketBytes: Int64 = 512 << 10
    /// A pace is measured over no less than this.
    private static let leastSpan = 2.0
    /// A reader that needs less than this for a window is given larger ones.
    private static let shortSpan = 0.75
    /// A reader that needs more than this is given smaller ones.
    private static let longSpan = 1.5

    init(first: Int64, most: Int64) {
        self.first = first
        self.most = most
        windowBytes = first
        lastBytes = first
    }

    /// A window of `windowBytes` was asked for while the reader stood at `position`.
    mutating func asked(readerAt position: Int64, at now: Duration) {
        lastBytes = windowBytes
        beginning = beginning ?? position
        let mark = Mark(position: position, time: now)
        guard let marks else { return marks = (mark, mark) }
        if (now - marks.newer.time).inSeconds >= Self.leastSpan { self.marks = (marks.newer, mark) }
    }

    /// Measures the reader's pace; to be called before the next window is asked for.
    mutating func measure(readerAt position: Int64, at now: Duration) {
        guard let mark = marks?.older, let beginning, position > mark.position else { return }
        let seconds = (now - mark.time).inSeconds
        let inSockets = mark.position == beginning ? min(Self.socketBytes, first) : 0
        let pace = Double(max(0, position - mark.position - inSockets)) / max(seconds, Self.leastSpan)
        bytesPerSecond = pace
        let span = Double(windowBytes) / max(pace, 1)
        if span < Self.shortSpan { windowBytes = min(windowBytes * 2, most, max(windowBytes, position - beginning)) }
        if span > Self.longSpan, seconds >= Self.leastSpan {
            windowBytes = max(windowBytes / 2, min(Self.leastBytes, first))
        }
    }

    /// The reader has sought: nothing is known of it any more.
    mutating func sought() { self = ReadAhead(first: first, most: most) }

    /// How far ahead of the reader at `position` bytes must be on the way, so that it does not wait for the round trip of a
    /// request.
    func lead(readerAt position: Int64, roundTrip: Duration) -> Int64 {
        let flying = (bytesPerSecond ?? 0) * roundTrip.inSeconds * 1.5
        let proven = min(position - (beginning ?? position), 2 * most)
        return max(lastBytes / 2, Int64(min(flying, Double(proven))))
    }

    /// How long until the reader has gone through `bytes`; zero while its pace is not known.
    func time(for bytes: Int64) -> Duration {
        guard let bytesPerSecond, bytesPerSecond >= 1, bytes > 0 else { return .zero }
        return .seconds(min(Double(bytes) / bytesPerSecond, 60))
    }
}
