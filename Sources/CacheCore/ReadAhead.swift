/// How much is asked for at once ahead of one reader: little at first, more for a reader that proves to go on, as
/// read-ahead in a file system does.
///
/// A window holds between one and two seconds of its reader's pace, so that whoever comes to wait for one never waits long,
/// and a reader who hangs up has not had much fetched in vain.
struct ReadAhead: Sendable {
    /// Bytes of the next window.
    private(set) var windowBytes: Int64
    /// Bytes of the window asked for last.
    private(set) var lastBytes: Int64
    /// How fast the reader went through what was asked for last; nil while that is not known.
    private(set) var bytesPerSecond: Double?
    private let first: Int64
    private let most: Int64
    /// Where the reader was when the last window was asked for, and when that was.
    private var mark: (position: Int64, time: Duration)?

    /// Windows of slow readers shrink to this.
    static let leastBytes: Int64 = 64 << 10
    /// A reader that needs less than this for a window is given larger ones.
    static let shortSpan = 1.0
    /// A reader that needs more than this is given smaller ones.
    static let longSpan = 2.0

    init(first: Int64, most: Int64) {
        self.first = first
        self.most = most
        windowBytes = first
        lastBytes = first
    }

    /// A window of `windowBytes` was asked for while the reader stood at `position`.
    mutating func asked(readerAt position: Int64, at now: Duration) {
        lastBytes = windowBytes
        // A second window asked for at once says nothing of the reader's pace.
        if mark?.position != position { mark = (position, now) }
    }

    /// Measures the reader's pace; to be called before the next window is asked for.
    mutating func measure(readerAt position: Int64, at now: Duration) {
        guard let mark, position > mark.position else { return }
        let seconds = max((now - mark.time).inSeconds, 1e-6)
        let pace = Double(position - mark.position) / seconds
        bytesPerSecond = pace
        let span = Double(windowBytes) / pace
        if span < Self.shortSpan { windowBytes = min(windowBytes * 2, most) }
        if span > Self.longSpan { windowBytes = max(windowBytes / 2, min(Self.leastBytes, first)) }
    }

    /// The reader has sought: nothing is known of it any more.
    mutating func sought() { self = ReadAhead(first: first, most: most) }

    /// How far ahead of the reader bytes must be on the way, so that it never waits for the round trip of a request.
    func lead(roundTrip: Duration) -> Int64 {
        let flying = (bytesPerSecond ?? 0) * roundTrip.inSeconds * 1.5
        return max(lastBytes / 2, Int64(min(flying, Double(2 * most))))
    }

    /// How long until the reader has gone through `bytes`; zero while its pace is not known.
    func time(for bytes: Int64) -> Duration {
        guard let bytesPerSecond, bytes > 0 else { return .zero }
        return .seconds(min(Double(bytes) / bytesPerSecond, 60))
    }
}
