package import CacheCore
package import CacheEngine

/// The body of `POST /v1/list`: the `ListingRequest` schema.
package struct ListingOrder: Sendable {
    private enum PageLimits: NumberLimits { static let range: ClosedRange<Int64> = 1...1000 }

    private struct Document: Decodable {
        var origin: String?
        var path: String?
        var format: ListingFormat?
        var pointer: String?
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
        if let pointer = document.pointer, !pointer.isEmpty, !pointer.hasPrefix("/") {
            throw .invalid("pointer", "A JSON pointer begins with a slash.")
        }
        if let cursor = document.cursor, !(1...Self.longestCursor).contains(cursor.utf8.count) {
            throw .invalid("cursor", "The value is no nextCursor of a listing.")
        }
        let path = document.path ?? ""
        request = ListingRequest(
            origin: origin, path: path.hasPrefix("/") ? String(path.dropFirst()) : path, format: document.format,
            pointer: document.pointer, limit: Int(document.limit?.value ?? 1000), cursor: document.cursor)
    }
}

/// The `ListSelection` schema.
struct ListSelectionDocument: Codable, Sendable {
    var format: ListingFormat?
    var pointer: String?
    var recursive: Bool
    var include: [String]
    var minBytes, maxBytes: Int64?
    var minAgeSeconds, maxAgeSeconds: Double?
    var limit: Int

    init(_ selection: ListSelection) {
        (format, pointer, recursive) = (selection.format, selection.pointer, selection.isRecursive)
        include = selection.include
        (minBytes, maxBytes) = (selection.minBytes, selection.maxBytes)
        (minAgeSeconds, maxAgeSeconds) = (selection.minAgeSeconds, selection.maxAgeSeconds)
        limit = selection.limit
    }

    private enum FileLimits: NumberLimits {
        static let range: ClosedRange<Int64> = 1...Int64(ListSelection.largestLimit)
    }

    private struct Document: Decodable {
        var format: ListingFormat?
        var pointer: String?
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
        if let pointer = document.pointer, !pointer.isEmpty, !pointer.hasPrefix("/") {
            throw decoder.invalid("A JSON pointer begins with a slash.", at: "pointer")
        }
        var selection = ListSelection()
        (selection.format, selection.pointer) = (document.format, document.pointer)
        selection.isRecursive = document.recursive ?? false
        selection.include = document.include?.values.map(\.text) ?? []
        (selection.minBytes, selection.maxBytes) = (document.minBytes?.value, document.maxBytes?.value)
        (selection.minAgeSeconds, selection.maxAgeSeconds) = (
            document.minAgeSeconds?.value, document.maxAgeSeconds?.value
        )
        selection.limit = document.limit.map { Int($0.value) } ?? ListSelection.largestLimit
        self.init(selection)
    }

    var selection: ListSelection {
        var selection = ListSelection()
        (selection.format, selection.pointer, selection.isRecursive) = (format, pointer, recursive)
        selection.include = include
        (selection.minBytes, selection.maxBytes) = (minBytes, maxBytes)
        (selection.minAgeSeconds, selection.maxAgeSeconds) = (minAgeSeconds, maxAgeSeconds)
        selection.limit = limit
        return selection
    }
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
