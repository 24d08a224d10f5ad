import DequeModule

/// Measures the rates at which the upstreams of running items send, by party (``ItemWait/Hold/party``).
///
/// Only the time with a running item counts, so that a rate stays known while its upstream is idle.
struct OriginRates: Sendable {
    /// The bytes and the busy time of one party.
    private struct Meter: Sendable {
        private struct Sample: Sendable {
            let busy: Duration
            let bytes: Int64
        }

        var runs = 0
        private var busy = Duration.zero
        private var bytes: Int64 = 0
        private(set) var noted: Duration
        private var samples: Deque<Sample> = [Sample(busy: .zero, bytes: 0)]

        init(at uptime: Duration) { noted = uptime }

        mutating func note(_ count: Int64, at uptime: Duration) {
            if runs > 0 { busy += max(.zero, uptime - noted) }
            noted = max(noted, uptime)
            bytes += count
            if let last = samples.last, busy - last.busy < OriginRates.spacing { return }
            samples.append(Sample(busy: busy, bytes: bytes))
            while samples.count > 1, samples[1].busy <= busy - OriginRates.window { samples.removeFirst() }
        }

        /// Nil: too little is known.
        var bytesPerSecond: Double? {
            guard let first = samples.first, let last = samples.last, last.busy - first.busy >= OriginRates.least,
                last.bytes > first.bytes
            else { return nil }
            return Double(last.bytes - first.bytes) / (last.busy - first.busy).inSeconds
        }
    }

    /// A party, and whether the rate limits of jobs bound what it can send.
    private struct Key: Hashable {
        let party: String
        let isLimited: Bool
    }

    /// The busy time over which a rate is measured, and the least one.
    private static let (window, least) = (Duration.seconds(5), Duration.milliseconds(500))
    /// The shortest busy time between two samples.
    private static let spacing = Duration.milliseconds(200)
    /// The largest number of parties without a running item that are remembered.
    private static let mostIdle = 1024
    private var meters: [Key: Meter] = [:]

    /// A run begins. `isLimited`: its job has a rate limit.
    mutating func began(at party: String, isLimited: Bool, _ uptime: Duration) {
        let key = Key(party: party, isLimited: isLimited)
        if meters[key] == nil, meters.count > Self.mostIdle { forgetIdle() }
        meters[key, default: Meter(at: uptime)].note(0, at: uptime)
        meters[key]?.runs += 1
    }

    /// Forgets the half of the idle parties that have been idle for longest.
    private mutating func forgetIdle() {
        let idle = meters.filter { $0.value.runs == 0 }.sorted { $0.value.noted < $1.value.noted }
        for (key, _) in idle.prefix((idle.count + 1) / 2) { meters[key] = nil }
    }

    mutating func received(_ bytes: Int64, from party: String, isLimited: Bool, at uptime: Duration) {
        meters[Key(party: party, isLimited: isLimited)]?.note(bytes, at: uptime)
    }

    mutating func ended(at party: String, isLimited: Bool, _ uptime: Duration) {
        let key = Key(party: party, isLimited: isLimited)
        meters[key]?.note(0, at: uptime)
        meters[key]?.runs -= 1
    }

    /// The measured rate; nil: none. That of jobs with a limit counts only if there is no other.
    func bytesPerSecond(of party: String) -> Double? {
        meters[Key(party: party, isLimited: false)]?.bytesPerSecond
            ?? meters[Key(party: party, isLimited: true)]?.bytesPerSecond
    }
}
