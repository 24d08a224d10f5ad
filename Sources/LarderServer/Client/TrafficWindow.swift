import CacheAPI
import CacheCore
import CacheEngine

/// The text of one second of traffic.
extension LiveSecondDocument {
    /// The time without a fraction, as in `2026-11-26T17:00:04Z`.
    var time: String { at.description.prefix { $0 != "." } + "Z" }

    /// The number of requests.
    var total: Int64 { requests["total"] ?? 0 }

    /// The second in one line, for output without a terminal.
    var line: String {
        let results = TrafficWindow.results.compactMap { name in
            requests[name].flatMap { $0 > 0 ? "\(name) \(FigureText.count($0))" : nil }
        }
        let times = [("p50", firstByteSeconds?.p50), ("p99", firstByteSeconds?.p99)].compactMap { name, time in
            time.map { "\(name) \(FigureText.latency($0))" }
        }
        let parts = [
            time, "clients \(FigureText.rate(Double(clientBytes)))",
            "from cache \(FigureText.rate(Double(clientBytesFromCache)))",
            "from upstream \(FigureText.rate(Double(clientBytesFromUpstream)))",
            "upstream \(FigureText.rate(Double(upstreamBytes)))", "hit ratio \(FigureText.share(requestHitRatio))",
            "requests \(FigureText.count(total))",
        ]
        return (parts + results + times + ["readers \(activeReaders)", "fills \(activeFills)"]).joined(separator: "  ")
    }
}

/// The last seconds of traffic, oldest first.
struct TrafficWindow {
    /// The results of requests, in the order of the output.
    static let results = ReadOutcome.Class.allCases.map(\.rawValue)

    private let capacity: Int
    private(set) var seconds: [LiveSecondDocument] = []

    init(capacity: Int = 300) { self.capacity = capacity }

    /// Appends a second. Seconds that are not later than the last one are ignored.
    mutating func add(_ second: LiveSecondDocument) {
        if let last = seconds.last, second.at <= last.at { return }
        seconds.append(second)
        if seconds.count > capacity { seconds.removeFirst(seconds.count - capacity) }
    }
}
