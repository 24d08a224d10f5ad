import CacheCore
package import CacheEngine

/// Builder for the Prometheus text exposition format, version 0.0.4, or for OpenMetrics 1.0.
package struct PrometheusText {
    /// The two text formats. OpenMetrics has exemplars.
    package enum Format: Sendable {
        case prometheus, openMetrics

        package var mediaType: String {
            switch self {
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }
    }

    /// The beginning of the names of standard metrics, which have no prefix of this service.
    static let processPrefix = "process_"

    private let format: Format
    private var lines = ""

    package init(_ format: Format = .prometheus) { self.format = format }

    /// The whole text.
    package var text: String { format == .openMetrics ? lines + "# EOF\n" : lines }

    /// Adds the figures of a table that are metrics. `rows`: the values that they are read from, each with its labels.
    /// A figure whose samples are known at run time only is left out while it has none.
    package mutating func add<Root>(_ figures: [Figure<Root>], _ rows: [(labels: [(String, String)], root: Root)]) {
        for figure in figures {
            guard let metric = figure.metric else { continue }
            let samples = rows.flatMap { labels, root in
                figure.samples(of: root).map { (labels: labels + $0.labels, value: $0.value) }
            }
            if case .samples = figure.source, samples.isEmpty { continue }
            describe(metric, figure.kind.rawValue, figure.help)
            for sample in samples { add(metric, sample.labels, sample.value) }
            for (labels, root) in rows {
                if case .distributions(let distributions) = figure.source {
                    for row in distributions(root) { add(metric, labels + row.labels, row.histogram) }
                }
            }
        }
    }

    /// Adds a histogram with cumulative buckets.
    private mutating func add(_ name: String, _ labels: [(String, String)], _ histogram: HistogramSnapshot) {
        var below: UInt64 = 0
        for (bucket, count) in histogram.counts.enumerated() {
            below += count
            let isLast = bucket == histogram.bounds.values.count
            let bound = isLast ? "+Inf" : "\(histogram.bounds.values[bucket])"
            add(name + "_bucket", labels + [("le", bound)], Double(below), histogram.exemplars[bucket])
        }
        add(name + "_sum", labels, histogram.sum)
        add(name + "_count", labels, Double(below))
    }

    private mutating func describe(_ name: String, _ kind: String, _ help: String) {
        // In OpenMetrics the name of a counter has no suffix; its sample has.
        let isShort = format == .openMetrics && kind == "counter" && name.hasSuffix("_total")
        let family = Self.fullName(isShort ? String(name.dropLast("_total".count)) : name)
        lines += "# HELP \(family) \(help.replacing("`", with: "")).\n# TYPE \(family) \(kind)\n"
    }

    /// The name of a metric with the prefix of this service.
    static func fullName(_ metric: String) -> String { (metric.hasPrefix(processPrefix) ? "" : "larder_") + metric }

    private mutating func add(
        _ name: String, _ labels: [(String, String)], _ value: Double, _ exemplar: Histogram.Exemplar? = nil
    ) {
        let labels = labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
        lines += Self.fullName(name) + (labels.isEmpty ? "" : "{\(labels)}") + " \(Self.number(value))"
        if format == .openMetrics, let exemplar {
            let at = Double(exemplar.at.milliseconds) / 1000
            lines += " # {trace_id=\"\(exemplar.traceID)\"} \(Self.number(exemplar.value)) \(at)"
        }
        lines += "\n"
    }

    /// Escapes a label value: backslash, quote and line feed.
    private static func escaped(_ value: String) -> String {
        value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }

    /// The text of a number, with the format's names for infinity and NaN.
    private static func number(_ value: Double) -> String {
        if let whole = Int64(exactly: value) { return String(whole) }
        return value.isNaN ? "NaN" : value.isInfinite ? (value < 0 ? "-Inf" : "+Inf") : "\(value)"
    }
}
