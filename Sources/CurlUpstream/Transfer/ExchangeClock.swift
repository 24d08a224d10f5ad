import CCurl
import CacheCore

/// Gathers the timings of one transfer over its hops, each from the transfer's start.
struct ExchangeClock {
    typealias Instant = ContinuousClock.Instant

    private let begun: Instant
    private var hop: Instant
    private var answer: Instant?
    private var known = TransferTimings()

    init(begun: Instant) {
        self.begun = begun
        hop = begun
    }

    mutating func hopBegan(at now: Instant) {
        hop = now
        answer = nil
    }

    /// Whether the present hop's answer has begun.
    var isAnswered: Bool { answer != nil }

    /// A header line has come; the hop's first counts.
    mutating func answered(at now: Instant) { if answer == nil { answer = now } }

    /// Reads what libcurl measured of the present hop.
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

    /// `end`: nil while the transfer goes on.
    func timings(at end: Instant?) -> TransferTimings {
        var timings = known
        timings.total = end.map { begun.duration(to: $0) }
        return timings
    }
}
