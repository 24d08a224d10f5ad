import CacheAPI
import CacheCore

/// The content of the live screen.
enum TrafficScreen {
    private static let nameWidth = 18
    private static let valueWidth = 12

    /// The lines for a terminal with `columns`. `notice`: a sentence about a lost connection; nil: none.
    static func lines(_ window: TrafficWindow, url: String, notice: String?, columns: Int) -> [String] {
        guard let now = window.seconds.last else { return [title(url, "", columns), "", notice ?? "No data yet."] }
        func course(_ name: String, _ value: String, _ values: (LiveSecondDocument) -> Double) -> String {
            row(name, value) + "  " + Sparkline.text(window.seconds.map(values), width: chartWidth(columns))
        }
        func rate(_ name: String, _ bytes: @escaping (LiveSecondDocument) -> Int64) -> String {
            course(name, FigureText.rate(Double(bytes(now)))) { Double(bytes($0)) }
        }
        return [
            title(url, now.time, columns), "",
            rate("to clients", \.clientBytes), rate("  from cache", \.clientBytesFromCache),
            rate("  from upstream", \.clientBytesFromUpstream), rate("upstream", \.upstreamBytes), "",
            course("requests/s", FigureText.count(now.total)) { Double($0.total) },
            row("hit ratio", FigureText.share(now.requestHitRatio)) + "  "
                + Sparkline.text(window.seconds.map { $0.requestHitRatio ?? 0 }, width: chartWidth(columns), top: 1),
            row("  last minute", FigureText.share(now.lastMinute.value?.requestHitRatio)),
        ] + results(now) + [
            "", firstByte(now), "",
            row("readers", FigureText.count(now.activeReaders)), row("fills", FigureText.count(now.activeFills)), "",
            notice ?? "Ctrl-C ends this view.",
        ]
    }

    private static func title(_ url: String, _ time: String, _ columns: Int) -> String {
        let blanks = max(2, columns - url.count - time.count - "larder  ".count)
        return "larder  \(url)" + String(repeating: " ", count: blanks) + time
    }

    private static func row(_ name: String, _ value: String) -> String {
        name + String(repeating: " ", count: max(1, nameWidth + valueWidth - name.count - value.count)) + value
    }

    private static func chartWidth(_ columns: Int) -> Int { max(0, columns - nameWidth - valueWidth - 2) }

    /// The requests of the last minute by result, in two lines.
    private static func results(_ now: LiveSecondDocument) -> [String] {
        let counts = now.lastMinute.value?.requests
        let cells = TrafficWindow.results.map { name in
            let number = FigureText.count(counts?[name] ?? 0)
            return name + String(repeating: " ", count: max(1, 18 - name.count - number.count)) + number
        }
        return stride(from: 0, to: cells.count, by: 4).map { start in
            "  " + cells[start..<min(start + 4, cells.count)].joined(separator: "  ")
        }
    }

    private static func firstByte(_ now: LiveSecondDocument) -> String {
        guard let times = now.firstByteSeconds else { return row("first byte", "–") }
        let values = [("p50", times.p50), ("p95", times.p95), ("p99", times.p99)]
        return row("first byte", "") + values.map { "  \($0.0) \(FigureText.latency($0.1 ?? 0))" }.joined()
    }
}
