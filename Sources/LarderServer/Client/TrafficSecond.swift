import CacheCore
import CacheEngine

/// The traffic of a service in one second: a bucket of `GET /v1/stats/live`.
struct TrafficSecond: Hashable {
    /// Times to the first byte of the response, in seconds.
    struct FirstByte: Hashable {
        var median: Double
        var p95: Double
        var p99: Double
    }

    /// The results of requests, in the order of the output.
    static let results = ReadOutcome.Class.allCases.map(\.rawValue)

    var at: Timestamp
    var clientBytesFromCache: Int64
    var clientBytesFromUpstream: Int64
    var upstreamBytes: Int64
    var requests: Int64
    /// The number of requests for each of ``results``.
    var counts: [Int64]
    /// The share of requests that were served from the cache; nil without requests.
    var hitRatio: Double?
    /// The same share of the last minute.
    var hitRatioOfMinute: Double?
    /// Nil: no response began in this second.
    var firstByte: FirstByte?
    var activeReaders: Int64
    var activeFills: Int64

    /// Nil if the document has no time.
    init?(_ bucket: JSON) {
        guard let at = bucket.time("at") else { return nil }
        self.at = at
        clientBytesFromCache = bucket.integer("clientBytesFromCache") ?? 0
        clientBytesFromUpstream = bucket.integer("clientBytesFromUpstream") ?? 0
        upstreamBytes = bucket.integer("upstreamBytes") ?? 0
        let requests = bucket.object("requests")
        self.requests = requests.integer("total") ?? 0
        counts = Self.results.map { requests.integer($0) ?? 0 }
        hitRatio = bucket.number("requestHitRatio")
        hitRatioOfMinute = bucket.object("lastMinute").number("requestHitRatio")
        if let times = bucket["firstByteSeconds"], let median = times.number("p50"), let p95 = times.number("p95"),
            let p99 = times.number("p99")
        {
            firstByte = FirstByte(median: median, p95: p95, p99: p99)
        }
        activeReaders = bucket.integer("activeReaders") ?? 0
        activeFills = bucket.integer("activeFills") ?? 0
    }

    /// The time without a fraction, as in `2026-11-26T17:00:04Z`.
    var time: String { RFC3339.format(at).prefix { $0 != "." } + "Z" }

    var clientBytes: Int64 { clientBytesFromCache + clientBytesFromUpstream }

    /// The second in one line, for output without a terminal.
    var line: String {
        let results = zip(Self.results, counts).filter { $0.1 > 0 }.map { "\($0.0) \(FigureText.count($0.1))" }
        let times =
            firstByte.map { ["p50 \(FigureText.latency($0.median))", "p99 \(FigureText.latency($0.p99))"] } ?? []
        let parts = [
            time, "clients \(FigureText.rate(Double(clientBytes)))",
            "from cache \(FigureText.rate(Double(clientBytesFromCache)))",
            "from upstream \(FigureText.rate(Double(clientBytesFromUpstream)))",
            "upstream \(FigureText.rate(Double(upstreamBytes)))", "hit ratio \(FigureText.share(hitRatio))",
            "requests \(FigureText.count(requests))",
        ]
        return (parts + results + times + ["readers \(activeReaders)", "fills \(activeFills)"]).joined(separator: "  ")
    }
}

/// The last seconds of traffic, oldest first.
struct TrafficWindow {
    private let capacity: Int
    private(set) var seconds: [TrafficSecond] = []

    init(capacity: Int = 300) { self.capacity = capacity }

    /// Appends a second. Seconds that are not later than the last one are ignored.
    mutating func add(_ second: TrafficSecond) {
        if let last = seconds.last, second.at <= last.at { return }
        seconds.append(second)
        if seconds.count > capacity { seconds.removeFirst(seconds.count - capacity) }
    }

    /// The number of requests with each result in the last `count` seconds.
    func counts(inLast count: Int) -> [Int64] {
        TrafficSecond.results.indices.map { index in seconds.suffix(count).reduce(0) { $0 + $1.counts[index] } }
    }
}
