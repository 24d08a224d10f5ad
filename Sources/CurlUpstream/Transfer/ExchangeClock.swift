import CCurl
import CacheCore

/// Measures the timings of one transfer over all hops, relative to the start of the transfer.
struct ExchangeClock {
    /// Start of the transfer.
    private let begun: Instant
    /// Start of the current hop.
    private var hop: Instant
    /// Time of the current hop's first header line.
    private var answer: Instant?
    /// The timings so far; a later hop replaces those of an earlier one.
    private var known = TransferTimings()

    init(begun: Instant) {
        self.begun = begun
        hop = begun
    }

    mutating func hopBegan(at now: Instant) {
        hop = now
        answer = nil
    }

    /// Whether the current hop's response has begun.
    var isAnswered: Bool { answer != nil }

    /// A header line has arrived; only the hop's first one is recorded.
    mutating func answered(at now: Instant) { if answer == nil { answer = now } }

    /// Reads libcurl's measurements of the current hop.
    mutating func note(_ easy: UnsafeMutableRawPointer) {
        let before = begun.duration(to: hop)
        func read(_ part: CURLINFO) -> Duration? {
            var microseconds: curl_off_t = 0
            guard larder_easy_get_offset(easy, part, &microseconds) == CURLE_OK, microseconds > 0 else { return nil }
            return before + .microseconds(Int64(microseconds))
        }
        known.nameLookup = read(CURLINFO_NAMELOOKUP_TIME_T) ?? known.nameLookup
        known.connect = read(CURLINFO_CONNECT_TIME_T) ?? known.connect
        known.tls = read(CURLINFO_APPCONNECT_TIME_T) ?? known.tls
        known.firstByte = answer.map { begun.duration(to: $0) } ?? known.firstByte
    }

    /// The timings so far. `end`: the end of the transfer; nil while it is in progress.
    func timings(at end: Instant?) -> TransferTimings {
        var timings = known
        timings.total = end.map { begun.duration(to: $0) }
        return timings
    }
}
