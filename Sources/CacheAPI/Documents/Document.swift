import CacheCore
import CacheEngine

/// Each response of the API is declared once, as a `Codable` structure: the service encodes it, and the client commands
/// decode it. The members have the names of the API. A member without a value is null; an ``Omittable`` one may be absent.

/// One page of a list: the `items` and the cursor of the next page.
package struct PageDocument<Item> {
    package var items: [Item]
    /// Nil on the last page.
    package var nextCursor: String?
    /// The number of entries of all pages, if it was requested.
    private var total: Omittable<Int>

    package init(_ items: [Item], next: String?, total: Int? = nil) {
        (self.items, nextCursor, self.total) = (items, next, .present(total))
    }
}

extension PageDocument: Encodable where Item: Encodable {}
extension PageDocument: Decodable where Item: Decodable {}

/// A list without pages.
package struct ListDocument<Item> {
    package var items: [Item]
}

extension ListDocument: Encodable where Item: Encodable {}
extension ListDocument: Decodable where Item: Decodable {}

/// A byte range: the schemas `ByteRun` and `ByteSpan`.
package struct RangeDocument: Codable, Sendable {
    package var offset: Int64
    /// Nil: the end is not known.
    package var length: Int64?
}

extension RangeDocument {
    init(_ range: ByteRange) {
        self.init(offset: range.lowerBound, length: range.upperBound == .max ? nil : range.length)
    }
}

/// The error of a part of a document: the `RecordedError` schema.
package struct RecordedErrorDocument: Codable, Sendable {
    package var code, message: String
}

extension RecordedErrorDocument {
    init(_ error: RecordedError) { self.init(code: error.code, message: error.message) }
    init(_ error: CacheError) { self.init(code: error.code.name, message: error.message) }
}

extension Duration {
    /// The duration in seconds for documents, rounded to microseconds.
    var documentSeconds: Double { inSeconds.rounded(to: 1e6) }
}

extension Double {
    /// The number rounded to a fraction with this denominator.
    func rounded(to denominator: Double) -> Double { (self * denominator).rounded() / denominator }

    /// A presentation time in seconds for documents, rounded to milliseconds.
    var mediaTime: Double { rounded(to: 1000) }
}

extension String {
    /// The URL without its query; it may be a signature.
    var withoutQuery: String { String(prefix { $0 != "?" }) }
}
