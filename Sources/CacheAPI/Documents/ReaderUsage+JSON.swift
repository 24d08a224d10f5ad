package import CacheCore
package import ReaderAccess

extension ReaderUsage {
    /// The `ReaderStats` schema.
    ///
    /// - Parameter price: The price of 10^9 bytes from upstreams; nil: unknown.
    package func json(pricePerGigabyte price: Double?) -> JSON {
        [
            "token": .string(token), "requests": .integer(requests), "bytes": .integer(bytes),
            "bytesFromCache": .integer(bytesFromCache),
            "savedCost": .optional(price) { .number(Double(bytesFromCache) / 1e9 * $0) },
        ]
    }
}

extension [ReaderUsage] {
    /// The readers as comma-separated values with a header line (RFC 4180). `price`: as for `json`.
    package func csv(pricePerGigabyte price: Double?) -> String {
        let rows = map { usage in
            let cost = price.map { "\(Double(usage.bytesFromCache) / 1e9 * $0)" } ?? ""
            return "\(Self.field(usage.token)),\(usage.requests),\(usage.bytes),\(usage.bytesFromCache),\(cost)"
        }
        return (["token,requests,bytes,bytesFromCache,savedCost"] + rows).map { $0 + "\r\n" }.joined()
    }

    /// A field; in quotation marks if it contains a separator. An apostrophe keeps spreadsheets from evaluating it.
    private static func field(_ text: String) -> String {
        let safe = text.first.map { "=+-@\t\r".contains($0) } ?? false ? "'" + text : text
        guard safe.contains(where: { ",\"\r\n".contains($0) }) else { return safe }
        return "\"" + safe.replacing("\"", with: "\"\"") + "\""
    }
}

extension PrometheusText {
    /// The maximum number of readers with a label of their own. The others are added up under `(other)`, which bounds
    /// the number of time series.
    package static let labelledReaders = 100

    /// Adds the counters of readers. Those with the most requests have a label of their own.
    package mutating func add(_ readers: [ReaderUsage]) {
        guard !readers.isEmpty else { return }
        let ranked = readers.sorted { ($0.requests, $1.token) > ($1.requests, $0.token) }
        var rows = Array(ranked.prefix(Self.labelledReaders)).filter { $0.token != ReaderFigures.other }
        let rest = ranked.filter { usage in !rows.contains { $0.token == usage.token } }
        if var other = rest.first {
            other.token = ReaderFigures.other
            for usage in rest.dropFirst() {
                other.requests += usage.requests
                other.bytes += usage.bytes
                other.bytesFromCache += usage.bytesFromCache
            }
            rows.append(other)
        }
        rows.sort { $0.token < $1.token }
        add(
            "reader_requests_total", .counter, "Content requests of each token.",
            rows.map { ([("token", $0.token)], Double($0.requests)) })
        add(
            "reader_bytes_total", .counter, "Body bytes sent to each token.",
            rows.map { ([("token", $0.token)], Double($0.bytes)) })
        add(
            "reader_bytes_saved_total", .counter, "Body bytes sent to each token from the cache.",
            rows.map { ([("token", $0.token)], Double($0.bytesFromCache)) })
    }
}
