/// Texts of the calls for folders of an API, and their responses.
extension FolderListing {
    /// A part of a folder.
    package struct Page: Hashable, Sendable {
        /// With ``FolderListing/path`` their references are relative to the mount, otherwise to the folder. Without
        /// ``FolderListing/query``.
        package var entries: [ListingEntry]
        /// The value of `{cursor}` and `{offset}` in the call for the next part; nil: this was the last one.
        package var next: String?
    }

    /// The texts of the placeholders.
    package struct Values: Sendable {
        /// The decoded path of the folder without a slash at its end.
        private let path: String
        /// ``Page/next`` of the part before; nil: the first part.
        private let place: String?

        package init(path: String, place: String?) {
            self.path = path.hasSuffix("/") ? String(path.dropLast()) : path
            self.place = place
        }

        /// The text of a template in which each placeholder is replaced by the result of `encode`.
        package func filled(_ template: String, _ encode: (String) -> String) -> String {
            var (text, rest) = ("", template[...])
            while let start = rest.firstIndex(of: "{") {
                text += rest[..<start]
                rest = rest[start...]
                guard let end = rest.firstIndex(of: "}"), let value = value(of: rest[...end]) else {
                    text.append(rest.removeFirst())
                    continue
                }
                text += encode(value)
                rest = rest[rest.index(after: end)...]
            }
            return text + rest
        }

        private func value(of placeholder: Substring) -> String? {
            switch placeholder {
            case "{path}": path
            case "{/path}": path.isEmpty ? "" : "/" + path
            case "{cursor}": place ?? ""
            case "{offset}": place ?? "0"
            default: nil
            }
        }
    }

    /// Whether the number of entries tells the place of the next part.
    private var countsEntries: Bool { [url, body, nextURL, nextBody].contains { $0?.contains("{offset}") ?? false } }

    /// Parses a response.
    ///
    /// - Parameter place: ``Page/next`` of the part before; nil: the first part.
    ///
    /// Throws `.upstreamUnusable` if the settings do not match the response. The message names the setting and contains no text
    /// of the response.
    package func page(_ text: [UInt8], at place: String?) throws(CacheError) -> Page {
        let document: JSON
        do { document = try JSONParser.parse(text) } catch {
            throw CacheError(.upstreamUnusable(), "The response of the API is no JSON document.")
        }
        let found = pointer.map { document.value(at: $0) } ?? document
        guard let items = found?.array ?? (pointer == nil ? document.onlyArray : nil) else {
            throw CacheError(
                .upstreamUnusable(), "The response of the API has no array of entries: see resolve.list.pointer.")
        }
        guard items.count <= Listing.entryLimit else {
            throw CacheError(.upstreamUnusable(), "The listing has more than \(Listing.entryLimit) entries.")
        }
        let entries = items.compactMap(entry)
        guard !entries.isEmpty || items.isEmpty else {
            throw CacheError(
                .upstreamUnusable(), "No entry of the API has a name: see resolve.list.name and resolve.list.path.")
        }
        return Page(entries: entries, next: next(in: document, after: items.count, at: place))
    }

    private func next(in document: JSON, after count: Int, at place: String?) -> String? {
        if let more, document.value(at: more) != .bool(true) { return nil }
        if let cursor {
            let value = document.value(at: cursor)
            let text = value?.string ?? value?.plainNumber
            return text?.isEmpty ?? true ? nil : text
        }
        guard countsEntries, count > 0 else { return nil }
        return String((place.flatMap { Int($0) } ?? 0) + count)
    }

    private func entry(_ item: JSON) -> ListingEntry? {
        guard let name = item.value(at: path ?? self.name ?? "/name")?.string else { return nil }
        let plain = path == nil ? name : String(name.drop { $0 == "/" })
        guard !plain.isEmpty else { return nil }
        let isFolder = item.value(at: type ?? "/type")?.string == folder ?? "dir"
        let size = item.value(at: size ?? "/size")
        var bytes: Int64?
        if !isFolder {
            if case .integer(let number)? = size, number >= 0 { bytes = number }
            // Google Drive states lengths as texts.
            if let text = size?.string { bytes = FieldText.byteCount(text.utf8) }
        }
        let time = item.value(at: modified ?? "/modified")?.string
        let reference = ListingEntry.reference(toName: plain)
        return ListingEntry(
            reference: isFolder && !reference.hasSuffix("/") ? reference + "/" : reference, bytes: bytes,
            modifiedAt: time.flatMap { RFC3339.parse($0) ?? HTTPDate.parse($0, now: Timestamp(seconds: 0)) },
            isFolder: isFolder)
    }
}

extension JSON {
    /// The text of an integer.
    fileprivate var plainNumber: String? { if case .integer(let number) = self { String(number) } else { nil } }
}
