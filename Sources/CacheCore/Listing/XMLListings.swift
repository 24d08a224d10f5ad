/// Parsers of listings in XML.
enum XMLListings {
    /// The response of `ListObjectsV2` (Amazon S3 API reference) or of its first version. A key that ends with `/` is a
    /// folder, as common prefixes are.
    static func objects(_ xml: inout XMLReader) throws(XMLError) -> Listing {
        try start("ListBucketResult", &xml)
        var listing = Listing()
        var (isCut, next): (Bool, String?) = (false, nil)
        while let child = try xml.nextChild() {
            switch child.name {
            case "Contents":
                let object = try texts(of: ["Key", "Size", "LastModified"], &xml)
                guard let key = object["Key"], !key.isEmpty else { continue }
                listing.entries.append(
                    ListingEntry(
                        reference: ListingEntry.reference(toName: key),
                        bytes: key.hasSuffix("/") ? nil : object["Size"].flatMap { FieldText.byteCount($0.utf8) },
                        modifiedAt: object["LastModified"].flatMap(RFC3339.parse), isFolder: key.hasSuffix("/")))
            case "CommonPrefixes":
                if let prefix = try texts(of: ["Prefix"], &xml)["Prefix"], !prefix.isEmpty {
                    listing.entries.append(
                        ListingEntry(reference: ListingEntry.reference(toName: prefix), isFolder: true))
                }
            case "IsTruncated": isCut = try xml.text() == "true"
            case "NextContinuationToken": next = try xml.text()
            default: try xml.skip()
            }
        }
        listing.continuation = isCut ? next : nil
        return listing
    }

    /// A response of `PROPFIND` (RFC 4918 §13). The names of folders end with `/`.
    static func multistatus(_ xml: inout XMLReader, now: Timestamp) throws(XMLError) -> [ListingEntry] {
        try start("multistatus", &xml)
        var entries: [ListingEntry] = []
        while let response = try xml.nextChild() {
            guard response.name == "response" else {
                try xml.skip()
                continue
            }
            var entry = ListingEntry(reference: "")
            while let child = try xml.nextChild() {
                switch child.name {
                case "href": entry.reference = PercentEncoding.valid(path: try xml.text())
                case "propstat": try properties(&entry, &xml, now: now)
                default: try xml.skip()
                }
            }
            if entry.isFolder {
                entry.bytes = nil
                if !entry.reference.hasSuffix("/") { entry.reference += "/" }
            }
            if !entry.reference.isEmpty { entries.append(entry) }
        }
        return entries
    }

    /// The rest of a `propstat`; properties with a status other than 200 are ignored.
    private static func properties(
        _ entry: inout ListingEntry, _ xml: inout XMLReader, now: Timestamp
    ) throws(XMLError) {
        var found = entry
        var isThere = true
        while let child = try xml.nextChild() {
            switch child.name {
            case "status": isThere = try xml.text().split(separator: " ").dropFirst().first == "200"
            case "prop":
                while let property = try xml.nextChild() {
                    switch property.name {
                    case "getcontentlength": found.bytes = FieldText.byteCount(try xml.text().utf8)
                    case "getlastmodified": found.modifiedAt = HTTPDate.parse(try xml.text(), now: now)
                    case "resourcetype":
                        while let type = try xml.nextChild() {
                            if type.name == "collection" { found.isFolder = true }
                            try xml.skip()
                        }
                    default: try xml.skip()
                    }
                }
            default: try xml.skip()
            }
        }
        if isThere { entry = found }
    }

    /// The enclosures of RSS 2.0 (`enclosure`) and Atom (RFC 4287 §4.2.7.2, `link rel="enclosure"`).
    static func feed(_ xml: inout XMLReader, now: Timestamp) throws(XMLError) -> [ListingEntry] {
        guard case .start(let root) = try xml.next() else { throw .malformed("XML", offset: 0) }
        guard root.name == "rss" || root.name == "feed" else { throw .unsupported("root element") }
        var entries: [ListingEntry] = []
        // The first entry of the present item, whose date can come later.
        var (first, date): (Int, Timestamp?) = (0, nil)
        while true {
            switch try xml.next() {
            case .start(let element):
                switch element.name {
                case "item", "entry": (first, date) = (entries.count, nil)
                case "pubDate", "updated", "published":
                    let text = try xml.text()
                    date = date ?? RFC3339.parse(text) ?? HTTPDate.parse(text, now: now)
                    for index in entries.indices.dropFirst(first) { entries[index].modifiedAt = date }
                default:
                    let url = element.name == "enclosure" ? element.attribute("url") : element.attribute("href")
                    let isEnclosure = element.name == "enclosure" || element.attribute("rel") == "enclosure"
                    guard isEnclosure, let url else { continue }
                    let size = element.attribute("length").flatMap { FieldText.byteCount($0.utf8) }
                    entries.append(
                        ListingEntry(
                            reference: PercentEncoding.valid(query: url), bytes: size == 0 ? nil : size,
                            modifiedAt: date))
                }
            case .end, .text: continue
            case .finished: return entries
            }
        }
    }

    private static func start(_ name: String, _ xml: inout XMLReader) throws(XMLError) {
        guard case .start(let root) = try xml.next() else { throw .malformed("XML", offset: 0) }
        guard root.name == name else { throw .unsupported("root element") }
    }

    /// Consumes the rest of the current element. Returns the texts of those children.
    private static func texts(of names: Set<String>, _ xml: inout XMLReader) throws(XMLError) -> [String: String] {
        var texts: [String: String] = [:]
        while let child = try xml.nextChild() {
            if names.contains(child.name) { texts[child.name] = try xml.text() } else { try xml.skip() }
        }
        return texts
    }
}
