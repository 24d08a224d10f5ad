/// Builder for the Prometheus text exposition format, version 0.0.4.
package struct PrometheusText {
    /// The type of a metric.
    package enum Kind: String { case counter, gauge }

    /// The media type of the format.
    package static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    /// The text so far.
    package private(set) var text = ""

    /// Adds one metric with its samples. The name gets the prefix `larder_`.
    package mutating func add(
        _ name: String, _ kind: Kind, _ help: String, _ samples: [(labels: [(String, String)], value: Double)]
    ) {
        text += "# HELP larder_\(name) \(help)\n# TYPE larder_\(name) \(kind.rawValue)\n"
        for sample in samples {
            let labels = sample.labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
            text += "larder_\(name)" + (labels.isEmpty ? "" : "{\(labels)}") + " \(Self.number(sample.value))\n"
        }
    }

    /// Adds a metric with one sample without labels.
    package mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        add(name, kind, help, [([], value)])
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
