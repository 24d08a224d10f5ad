/// The files that a job item with a list selects from a folder or a document of the upstream.
package struct ListSelection: Hashable, Sendable, Codable {
    /// Nil: as the account of the origin and the response suggest.
    package var format: ListingFormat?
    /// The JSON pointer to the array of a JSON document.
    package var pointer: String?
    /// Whether the folders of the folder are listed, too.
    package var isRecursive = false
    /// Glob patterns for paths relative to the folder (``KeyPattern``), of which one must match; empty: all files.
    package var include: [String] = []
    /// The limits for the length in bytes. A file whose listing states none is not selected by them.
    package var minBytes, maxBytes: Int64?
    /// The limits for the time since the last change in seconds. A file whose listing states none is not selected by them.
    package var minAgeSeconds, maxAgeSeconds: Double?
    /// The largest number of files; more are an error.
    package var limit = Self.largestLimit

    package static let largestLimit = 10_000

    /// The names of the members in documents of the API and in the catalog.
    private enum CodingKeys: String, CodingKey {
        case format, pointer
        case isRecursive = "recursive"
        case include, minBytes, maxBytes, minAgeSeconds, maxAgeSeconds, limit
    }

    package init() {}

    /// A function that tells whether an entry is selected.
    ///
    /// - Parameter folder: the path of the folder, which precedes that of the entry.
    package func filter(below folder: String, at now: Timestamp) -> (_ entry: ListingEntry) -> Bool {
        let patterns = include.compactMap { KeyPattern($0) }
        let root = String(decoding: PercentEncoding.decoded(folder), as: UTF8.self)
        return { entry in
            guard !entry.isFolder else { return false }
            if minBytes != nil || maxBytes != nil {
                guard let bytes = entry.bytes, bytes >= minBytes ?? 0, bytes <= maxBytes ?? .max else { return false }
            }
            if minAgeSeconds != nil || maxAgeSeconds != nil {
                guard let age = entry.modifiedAt.map({ now.since($0).inSeconds }), age >= minAgeSeconds ?? -.infinity,
                    age <= maxAgeSeconds ?? .infinity
                else { return false }
            }
            guard !include.isEmpty else { return true }
            let path = entry.reference.prefix { $0 != "?" }
            let decoded = String(decoding: PercentEncoding.decoded(path), as: UTF8.self)
            let relative = decoded.hasPrefix(root) ? String(decoded.dropFirst(root.count)) : decoded
            return patterns.contains { $0.matches(relative) }
        }
    }
}
