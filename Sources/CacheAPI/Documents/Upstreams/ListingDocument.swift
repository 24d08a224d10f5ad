package import CacheCore
package import CacheEngine

/// The body of `POST /v1/list`: the `ListingRequest` schema.
package struct ListingOrder: Sendable {
    private enum PageLimits: NumberLimits { static let range: ClosedRange<Int64> = 1...1000 }

    private struct Document: Decodable {
        var origin: String?
        var path: String?
        var format: ListingFormat?
        var pointer: Checked<PointerRule>?
        var limit: Limited<PageLimits>?
        var cursor: String?
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }
    private static let longestCursor = 4096

    package var request: ListingRequest

    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        guard let origin = document.origin else {
            throw .invalid("origin", "The name of an origin is expected here.")
        }
        if let cursor = document.cursor, !(1...Self.longestCursor).contains(cursor.utf8.count) {
            throw .invalid("cursor", "The value is no nextCursor of a listing.")
        }
        let path = document.path ?? ""
        request = ListingRequest(
            origin: origin, path: path.hasPrefix("/") ? String(path.dropFirst()) : path, format: document.format,
            pointer: document.pointer?.text, limit: Int(document.limit?.value ?? 1000), cursor: document.cursor)
    }
}

/// The `ListSelectionRequest` schema.
struct ListSelectionRequest: Decodable, Sendable {
    let selection: ListSelection

    private enum FileLimits: NumberLimits {
        static let range: ClosedRange<Int64> = 1...Int64(ListSelection.largestLimit)
    }

    private struct Document: Decodable {
        var format: ListingFormat?
        var pointer: Checked<PointerRule>?
        var recursive: Bool?
        var include: List<64, KeyPatternText>?
        var minBytes, maxBytes: Limited<NotNegative>?
        var minAgeSeconds, maxAgeSeconds: Limited<NotNegativeSeconds>?
        var limit: Limited<FileLimits>?
    }

    /// A glob pattern as the client wrote it.
    private struct KeyPatternText: Decodable, Sendable {
        let text: String

        init(from decoder: any Decoder) throws {
            _ = try KeyPattern(from: decoder)
            text = try String(from: decoder)
        }
    }

    private enum NotNegativeSeconds: NumberLimits { static let range = 0.0...1e10 }

    /// The members of the schema.
    static var keys: [String] { JSON.keys(of: Document.self) }

    init(from decoder: any Decoder) throws {
        let document = try Document(from: decoder)
        var selection = ListSelection()
        (selection.format, selection.pointer) = (document.format, document.pointer?.text)
        selection.isRecursive = document.recursive ?? false
        selection.include = document.include?.values.map(\.text) ?? []
        (selection.minBytes, selection.maxBytes) = (document.minBytes?.value, document.maxBytes?.value)
        (selection.minAgeSeconds, selection.maxAgeSeconds) = (
            document.minAgeSeconds?.value, document.maxAgeSeconds?.value
        )
        selection.limit = document.limit.map { Int($0.value) } ?? ListSelection.largestLimit
        self.selection = selection
    }
}

/// A JSON pointer (RFC 6901).
private enum PointerRule: TextRule {
    static let expectation = "A JSON pointer begins with a slash."
    static func permits(_ text: String) -> Bool { text.isEmpty || text.hasPrefix("/") }
}

/// The `Listing` schema.
package struct ListingDocument: Codable, Sendable {
    /// The `ListingEntry` schema.
    package struct Entry: Codable, Sendable {
        package var path: String
        package var isFolder: Bool
        package var bytes: Int64?
        package var modifiedAt: Timestamp?
    }

    var origin: String
    var format: ListingFormat
    package var items: [Entry]
    package var nextCursor: String?
    package var skippedEntries: Int
}

extension ListingDocument {
    package init(_ page: ListingPage, of origin: String) {
        self.init(
            origin: origin, format: page.format,
            items: page.entries.map {
                Entry(path: $0.reference, isFolder: $0.isFolder, bytes: $0.bytes, modifiedAt: $0.modifiedAt)
            },
            nextCursor: page.nextCursor, skippedEntries: page.skippedEntries)
    }
}
