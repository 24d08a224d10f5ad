/// A format in which upstreams list files.
package enum ListingFormat: String, Hashable, Sendable, CaseIterable, ChoiceCodable {
    /// The index page of nginx, Apache, Caddy and other servers.
    case html
    /// `index.json` of nginx (`autoindex_format json`) and Caddy, or any document with an array of paths or of objects.
    case json
    /// One path in each line.
    case text
    /// RSS 2.0 and Atom: the enclosures of the items.
    case rss
    /// `ListObjectsV2` of Amazon S3, Google Cloud Storage and services with their interface.
    case s3
    /// `PROPFIND` with depth 1 (RFC 4918 §9.1).
    case webdav
    /// An HLS playlist or DASH manifest: its files.
    case playlist
    /// The API call of the setting `resolve.list` (``FolderListing``).
    case api

    /// Whether a listing shows one folder: its entries are the direct children. Otherwise it is a document that names
    /// files anywhere.
    package var isOfFolder: Bool { self == .html || self == .s3 || self == .webdav || self == .api }

    /// Whether the upstream sends a listing in parts, in an order of its own.
    package var isPaged: Bool { self == .s3 || self == .api }
}

/// A file or a folder in a listing.
package struct ListingEntry: Hashable, Sendable {
    /// As the listing states it: a URI reference (RFC 3986 §4.1), percent-encoded. In a listing of `s3` it is relative to
    /// the bucket.
    package var reference: String
    /// The length of the file; nil: not stated, or rounded.
    package var bytes: Int64?
    /// Nil: not stated.
    package var modifiedAt: Timestamp?
    package var isFolder: Bool

    package init(reference: String, bytes: Int64? = nil, modifiedAt: Timestamp? = nil, isFolder: Bool = false) {
        self.reference = reference
        self.bytes = bytes
        self.modifiedAt = modifiedAt
        self.isFolder = isFolder
    }

    /// The relative reference to a plain name or path; a colon in it begins no scheme.
    static func reference(toName name: String) -> String {
        (name.hasPrefix("/") ? "." : "./") + PercentEncoding.encoded(name: name)
    }
}

/// A response with a listing.
package struct Listing: Hashable, Sendable {
    package var entries: [ListingEntry] = []
    /// The token for the next part of an `s3` listing; nil: this was the last one.
    package var continuation: String?
    /// Whether the entries are playlists themselves.
    package var listsPlaylists = false

    /// The largest number of entries of one response.
    package static let entryLimit = 100_000

    /// Parses a response.
    ///
    /// - Parameter pointer: the JSON pointer (RFC 6901) to the array; nil: the document is the array, or has one member
    ///   that is an array.
    /// - Parameter now: the present time, for dates without a century.
    ///
    /// Throws `.upstreamUnusable` if the text is malformed or has more than ``entryLimit`` entries. The message names the
    /// fault and contains no text of the response.
    package init(
        _ text: [UInt8], as format: ListingFormat, pointer: String? = nil, now: Timestamp
    ) throws(CacheError) {
        switch format {
        case .html: entries = HTMLIndex.entries(text, now: now)
        case .json: entries = try Self.json(text, pointer)
        case .text: entries = try Self.text(text)
        case .rss: entries = try Self.xml(text) { (xml) throws(XMLError) in try XMLListings.feed(&xml, now: now) }
        case .playlist, .api: throw CacheError(.internal, "The format has a parser of its own.")
        case .s3: self = try Self.xml(text) { (xml) throws(XMLError) in try XMLListings.objects(&xml) }
        case .webdav:
            entries = try Self.xml(text) { (xml) throws(XMLError) in try XMLListings.multistatus(&xml, now: now) }
        }
        guard entries.count <= Self.entryLimit else {
            throw CacheError(.upstreamUnusable(), "The listing has more than \(Self.entryLimit) entries.")
        }
    }

    package init() {}

    /// The format of a response to `GET`: by its first bytes, else by its media type; nil: none.
    package static func format(of text: [UInt8], contentType: String?) -> ListingFormat? {
        let start = String(decoding: text.prefix(2048), as: UTF8.self)
        let first = start.first { !$0.isWhitespace && $0 != "\u{FEFF}" }
        if start.contains("<ListBucketResult") { return .s3 }
        if XMLReader.withoutByteOrderMark(text).starts(with: "#EXTM3U".utf8) || start.contains("<MPD") {
            return .playlist
        }
        if start.contains("<rss") || start.contains("<feed") { return .rss }
        if first == "[" || first == "{" { return .json }
        if first == "<" { return .html }
        let type = contentType.map(MediaType.essence)
        return type == "text/html" ? .html : type?.hasPrefix("text/") == true ? .text : nil
    }

    /// Runs a parser of XML with the errors of listings.
    private static func xml<Value>(
        _ text: [UInt8], _ parse: (inout XMLReader) throws(XMLError) -> Value
    ) throws(CacheError) -> Value {
        var reader = XMLReader(text, depth: 32)
        do throws(XMLError) { return try parse(&reader) } catch {
            let fault =
                switch error {
                case .malformed(let part, let offset): "malformed \(part) at byte \(offset)"
                case .unsupported(let part): "unsupported \(part)"
                case .tooLarge(let limit): "too large: \(limit)"
                }
            throw CacheError(.upstreamUnusable(), "The listing is no XML document of its format (\(fault)).")
        }
    }

    /// One path in each line; empty lines and lines that begin with `#` are skipped. Bytes that a URI must not contain
    /// are percent-encoded.
    private static func text(_ text: [UInt8]) throws(CacheError) -> [ListingEntry] {
        var entries: [ListingEntry] = []
        for line in text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let path = line.trimmed(FieldText.isSpace)
            guard let first = path.first, first != UInt8(ascii: "#") else { continue }
            guard let name = String(validating: path, as: UTF8.self) else {
                throw CacheError(.upstreamUnusable(), "The listing is not UTF-8.")
            }
            entries.append(ListingEntry(reference: PercentEncoding.valid(query: name), isFolder: name.hasSuffix("/")))
        }
        return entries
    }

    private static func json(_ text: [UInt8], _ pointer: String?) throws(CacheError) -> [ListingEntry] {
        let document: JSON
        do { document = try JSONParser.parse(text) } catch {
            throw CacheError(.upstreamUnusable(), "The listing is no JSON document.")
        }
        let found = pointer.map { document.value(at: $0) } ?? document
        guard let items = found?.array ?? (pointer == nil ? document.onlyArray : nil) else {
            throw CacheError(
                .upstreamUnusable(),
                pointer == nil
                    ? "The JSON document contains no single array of files: name it with pointer."
                    : "The JSON document has no array at the pointer.")
        }
        return items.compactMap(Self.entry)
    }

    /// The entry of a path, or of an object with one of the usual names for a path.
    private static func entry(_ item: JSON) -> ListingEntry? {
        if let path = item.string {
            return ListingEntry(reference: PercentEncoding.valid(query: path), isFolder: path.hasSuffix("/"))
        }
        // A URL or href is a reference, and the others are plain names.
        let reference = item["url"]?.string ?? item["href"]?.string
        guard let name = reference ?? ["path", "key", "name", "file"].lazy.compactMap({ item[$0]?.string }).first else {
            return nil
        }
        let kind = item["type"]?.string
        let isFolder = item["is_dir"] == .bool(true) || kind == "directory" || kind == "dir" || name.hasSuffix("/")
        let sizes = ["bytes", "size", "length"].lazy.compactMap { item[$0] }
        let times = ["modifiedAt", "mod_time", "modified", "lastModified", "mtime"].lazy.compactMap { item[$0]?.string }
        var bytes: Int64?
        if !isFolder, case .integer(let size)? = sizes.first, size >= 0 { bytes = size }
        let time = times.first.flatMap { RFC3339.parse($0) ?? HTTPDate.parse($0, now: Timestamp(seconds: 0)) }
        let encoded = reference.map { PercentEncoding.valid(query: $0) } ?? ListingEntry.reference(toName: name)
        return ListingEntry(
            reference: isFolder && !encoded.hasSuffix("/") ? encoded + "/" : encoded, bytes: bytes, modifiedAt: time,
            isFolder: isFolder)
    }
}

extension JSON {
    var array: [JSON]? { if case .array(let items) = self { items } else { nil } }

    /// The array of an object that has one member with an array.
    var onlyArray: [JSON]? {
        guard case .object(let members) = self else { return nil }
        let arrays = members.compactMap(\.value.array)
        return arrays.count == 1 ? arrays[0] : nil
    }
}
