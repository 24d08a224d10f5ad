import DequeModule

/// Measures the rates at which the upstreams of running items send, by party (``ItemWait/Hold/party``).
///
/// Only the time with a running item counts, so that a rate stays known while its upstream is idle. A busy period begins with
/// a warm-up, in which neither time nor bytes count: connections open, and the first reports of runs lag behind their bytes.
/// With it, predictions would be late by a fifth after two seconds.
struct OriginRates: Sendable {
    /// The bytes and the busy time of one party.
    private struct Meter: Sendable {
        private struct Sample: Sendable {
            let busy: Duration
            let bytes: Int64
        }

        private(set) var runs = 0
        /// All busy time and bytes, for a party that never passes a warm-up.
        private var total = Sample(busy: .zero, bytes: 0)
        /// The time and the bytes that count.
        private var counted = Sample(busy: .zero, bytes: 0)
        private(set) var noted: Duration
        /// The time of the first bytes of the busy period; nil: none have arrived.
        private var begunAt: Duration?
        private var samples: Deque<Sample> = [Sample(busy: .zero, bytes: 0)]

        init(at uptime: Duration) { noted = uptime }

        mutating func began(at uptime: Duration) {
            if runs == 0, uptime - noted >= OriginRates.longestGap { begunAt = nil }
            note(0, at: uptime)
            runs += 1
        }

        mutating func ended(at uptime: Duration) {
            note(0, at: uptime)
            runs -= 1
        }

        mutating func note(_ count: Int64, at uptime: Duration) {
            let time = runs > 0 ? max(.zero, uptime - noted) : .zero
            noted = max(noted, uptime)
            total = Sample(busy: total.busy + time, bytes: total.bytes + count)
            if begunAt == nil, count > 0 {
                begunAt = uptime
                return
            }
            guard let begunAt, uptime - begunAt >= OriginRates.warmUp else { return }
            counted = Sample(busy: counted.busy + time, bytes: counted.bytes + count)
            if let last = samples.last, counted.busy - last.busy < OriginRates.spacing { return }
            samples.append(counted)
            while samples.count > 1, samples[1].busy <= counted.busy - OriginRates.window { samples.removeFirst() }
        }

        /// Nil: too little is known.
        var bytesPerSecond: Double? {
            guard let first = samples.first, let last = samples.last, last.busy - first.busy >= OriginRates.least,
                last.bytes > first.bytes
            else { return rateOfAll }
            return Double(last.bytes - first.bytes) / (last.busy - first.busy).inSeconds
        }

        /// The rate of a party that is idle, or has had many short busy periods.
        private var rateOfAll: Double? {
            let least = runs == 0 ? OriginRates.least : OriginRates.least * 4
            guard total.busy >= least, total.bytes > 0 else { return nil }
            return Double(total.bytes) / total.busy.inSeconds
        }
    }

    /// A party, and whether the rate limits of jobs bound what it can send.
    private struct Key: Hashable {
        let party: String
        let isLimited: Bool
    }

    /// The busy time over which a rate is measured, and the least one.
    private static let (window, least) = (Duration.seconds(5), Duration.milliseconds(500))
    /// The time from the first bytes of a busy period until bytes count.
    private static let warmUp = Duration.milliseconds(500)
    /// The longest time without a run within a busy period.
    private static let longestGap = Duration.seconds(1)
    /// The shortest busy time between two samples.
    private static let spacing = Duration.milliseconds(200)
    /// The largest number of parties without a running item that are remembered.
    private static let mostIdle = 1024
    private var meters: [Key: Meter] = [:]

    /// A run begins. `isLimited`: its job has a rate limit.
    mutating func began(at party: String, isLimited: Bool, _ uptime: Duration) {
        let key = Key(party: party, isLimited: isLimited)
        if meters[key] == nil, meters.count > Self.mostIdle { forgetIdle() }
        meters[key, default: Meter(at: uptime)].began(at: uptime)
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
        meters[Key(party: party, isLimited: isLimited)]?.ended(at: uptime)
    }

    /// The measured rate; nil: none. That of jobs with a limit counts only if there is no other.
    func bytesPerSecond(of party: String) -> Double? {
        meters[Key(party: party, isLimited: false)]?.bytesPerSecond
            ?? meters[Key(party: party, isLimited: true)]?.bytesPerSecond
    }
}
