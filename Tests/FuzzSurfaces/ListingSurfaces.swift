import CacheCore

/// Listings of upstreams.
extension Surface {
    private static let now = Timestamp(seconds: 1_795_248_000)

    static let listings = [
        Surface(
            name: "listing",
            seeds: [
                "<a href=\"b%20c.mp4\">b</a> 28-Nov-2026 10:00 12\n<a href=\"../\">",
                "[\"a\", {\"path\": \"b\", \"size\": 1}]",
                "# list\na/b.mp4\n", "<rss><item><enclosure url=\"a\" length=\"1\"/></item></rss>",
                "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>",
                "<multistatus xmlns=\"DAV:\"><response><href>/a/</href></response></multistatus>",
            ].map { Array($0.utf8) }
        ) { bytes in
            _ = Listing.format(of: bytes, contentType: "text/plain")
            return [ListingFormat.html, .json, .text, .rss, .s3, .webdav].allSatisfy { format in
                (try? Listing(bytes, as: format, now: now)).map { areValid($0.entries) } ?? true
            }
        },
        Surface(
            name: "folder of an API",
            seeds: [
                #"{"entries": [{"name": "a b", "size": "7", "modified": "2026-01-02T03:04:05Z"}], "cursor": "c"}"#,
                #"{"entries": [{"name": "/", "type": "dir", "size": -1}], "cursor": 5}"#,
            ].map { Array($0.utf8) }
        ) { bytes in
            var list = FolderListing()
            (list.pointer, list.cursor) = ("/entries", "/cursor")
            let page = try? list.page(bytes, at: nil)
            let text = String(decoding: bytes, as: UTF8.self)
            let filled = FolderListing.Values(path: text, place: text).filled("{path}") { $0 }
            return page.map { areValid($0.entries) } ?? true
                && filled == (text.hasSuffix("/") ? String(text.dropLast()) : text)
        },
    ]

    /// References are percent-encoded, and no length is negative.
    private static func areValid(_ entries: [ListingEntry]) -> Bool {
        entries.allSatisfy { entry in
            entry.bytes ?? 0 >= 0 && entry.reference.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        }
    }
}
