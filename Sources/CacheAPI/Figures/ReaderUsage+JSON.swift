import CacheCore
import CacheEngine
package import ReaderAccess

extension Figure<ReaderUsage> {
    /// All figures of a reader.
    static let all: [Figure] = [
        Figure("reader_requests_total", .count, "Content requests of each token", "requests", \.requests),
        Figure("reader_bytes_total", .bytes, "Body bytes sent to each token", "bytes", \.bytes),
        Figure(
            "reader_bytes_saved_total", .bytes, "Body bytes sent to each token from the cache", "bytesFromCache",
            \.bytesFromCache),
        Figure(
            "reader_errors_total", .count,
            "Content requests of each token answered with a status of 400 or more",
            "errors", \.errors),
    ]
}

/// The figures of one reader with the cost of its bytes from the cache.
struct ReaderStats: Sendable {
    var usage: ReaderUsage
    /// The price of 10^9 bytes from upstreams; nil: unknown.
    var pricePerGigabyte: Double?

    static let document = FigureDocument<ReaderStats>()
        .adding("token") { $0.usage.token }
        .adding(Figure<ReaderUsage>.all.map { $0.moved(\ReaderStats.usage) })
        .adding("savedCost") { $0.usage.bytesFromCache.cost(at: $0.pricePerGigabyte) }
}

extension ReaderUsage {
    /// The `ReaderStats` schema.
    ///
    /// - Parameter price: The price of 10^9 bytes from upstreams; nil: unknown.
    package func document(pricePerGigabyte price: Double?) -> some Encodable {
        ReaderStats.document(of: ReaderStats(usage: self, pricePerGigabyte: price))
    }
}

extension Int64 {
    /// The cost of this number of bytes at a price of 10^9 bytes; nil without a price.
    func cost(at pricePerGigabyte: Double?) -> Double? { pricePerGigabyte.map { Double(self) / 1e9 * $0 } }
}

extension [ReaderUsage] {
    /// The readers as comma-separated values with a header line (RFC 4180). `price`: as for `json`.
    package func csv(pricePerGigabyte price: Double?) -> String {
        let rows = map { usage in
            let cost = usage.bytesFromCache.cost(at: price).map { "\($0)" } ?? ""
            return
                "\(Self.field(usage.token)),\(usage.requests),\(usage.bytes),\(usage.bytesFromCache),\(cost),\(usage.errors)"
        }
        return (["token,requests,bytes,bytesFromCache,savedCost,errors"] + rows).map { $0 + "\r\n" }.joined()
    }

    /// A field; in quotation marks if it contains a separator. An apostrophe keeps spreadsheets from evaluating it.
    private static func field(_ text: String) -> String {
        let safe = text.first.map { "=+-@\t\r".contains($0) } ?? false ? "'" + text : text
        guard safe.contains(where: { ",\"\r\n".contains($0) }) else { return safe }
        return "\"" + safe.replacing("\"", with: "\"\"") + "\""
    }
}

extension [ReaderUsage] {
    /// The readers with their labels in `/metrics`. The others are added up under `(other)`, which bounds the number of
    /// time series.
    var labelled: [(labels: [(String, String)], root: ReaderUsage)] {
        var rows = filter(\.isLabelled)
        let rest = filter { !$0.isLabelled }
        if var other = rest.first {
            other.token = ReaderFigures.other
            for usage in rest.dropFirst() {
                other.requests += usage.requests
                other.bytes += usage.bytes
                other.bytesFromCache += usage.bytesFromCache
                other.errors += usage.errors
            }
            rows.append(other)
        }
        return rows.sorted { $0.token < $1.token }.map { ([("token", $0.token)], $0) }
    }
}
