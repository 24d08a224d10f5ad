import CacheCore
import Testing

/// Listings of upstreams.
@Suite struct ListingTests {
    private static let now = Timestamp(seconds: 1_800_000_000)

    private func entries(
        _ text: String, _ format: ListingFormat, pointer: String? = nil
    ) throws(CacheError) -> [ListingEntry] {
        try Listing(Array(text.utf8), as: format, pointer: pointer, now: Self.now).entries
    }

    @Test("The index of nginx states names, times and sizes")
    func nginx() throws {
        let text = """
            <html><head><title>Index of /films/</title></head><body><h1>Index of /films/</h1><hr><pre><a href="../">../</a>
            <a href="trailers/">trailers/</a>                                          28-Nov-2026 10:05                   -
            <a href="a%20%26%20b.mp4">a &amp; b.mp4</a>                                 05-Jan-2026 23:59            10485760
            </pre><hr></body></html>
            """
        #expect(
            try entries(text, .html) == [
                ListingEntry(reference: "../", isFolder: true),
                ListingEntry(
                    reference: "trailers/", modifiedAt: Timestamp(seconds: 1_795_860_300), isFolder: true),
                ListingEntry(
                    reference: "a%20%26%20b.mp4", bytes: 10_485_760, modifiedAt: Timestamp(seconds: 1_767_657_540)),
            ])
    }

    @Test("Rounded sizes of Apache, other quotes and links to sort are read")
    func apache() throws {
        let text = """
            <tr><th><A HREF='?C=N;O=D'>Name</A></th></tr><tr><td><a class="x" href="b.mp4">b.mp4</a></td>\
            <td align="right">2026-01-05 23:59  </td><td align="right">1.5M</td></tr>\
            <tr><td><a href="c.mp4?x=1&amp;y=2">c</a></td><td align="right">2026-01-05 23:59  </td><td>77 </td></tr>
            """
        let time = Timestamp(seconds: 1_767_657_540)
        #expect(
            try entries(text, .html) == [
                ListingEntry(reference: "b.mp4", modifiedAt: time),
                ListingEntry(reference: "c.mp4?x=1&y=2", bytes: 77, modifiedAt: time),
            ])
    }

    @Test("Documents of paths: nginx, Caddy, lists and nested arrays")
    func json() throws {
        let nginx = """
            [{"name":"100% a:b.mp4","type":"file","mtime":"Mon, 05 Jan 2026 23:59:00 GMT","size":5},
             {"name":"x","type":"directory","mtime":"Mon, 05 Jan 2026 23:59:00 GMT"}]
            """
        let time = Timestamp(seconds: 1_767_657_540)
        #expect(
            try entries(nginx, .json) == [
                ListingEntry(reference: "./100%25%20a:b.mp4", bytes: 5, modifiedAt: time),
                ListingEntry(reference: "./x/", modifiedAt: time, isFolder: true),
            ])
        let caddy = #"[{"name":"y","size":4096,"url":"./y/","mod_time":"2026-01-05T23:59:00Z","is_dir":true}]"#
        #expect(try entries(caddy, .json) == [ListingEntry(reference: "./y/", modifiedAt: time, isFolder: true)])
        #expect(try entries(#"{"files":["a.mp4?t=1"]}"#, .json) == [ListingEntry(reference: "a.mp4?t=1")])
        #expect(try entries(#"{"a":[],"b":{"c":["d"]}}"#, .json, pointer: "/b/c") == [ListingEntry(reference: "d")])
        for (text, pointer) in [(#"{"a":[],"b":[]}"#, nil), ("{}", "/a"), ("[", nil), (#""x""#, nil)] {
            #expect(throws: CacheError.self) { try entries(text, .json, pointer: pointer) }
        }
    }

    @Test("A text has one path in each line")
    func text() throws {
        #expect(
            try entries("# films\r\na.mp4 \n\n/b c.mp4\nfolder/", .text) == [
                ListingEntry(reference: "a.mp4"), ListingEntry(reference: "/b%20c.mp4"),
                ListingEntry(reference: "folder/", isFolder: true),
            ])
    }

    @Test("Feeds name their enclosures, with the date of the item before or behind them")
    func feeds() throws {
        let rss = """
            <rss version="2.0"><channel><link>http://h/</link><item><pubDate>Mon, 05 Jan 2026 23:59:00 GMT</pubDate>
            <enclosure url="http://h/1.mp3" length="9" type="audio/mpeg"/></item><item>
            <enclosure url="2.mp3" length="0"/><pubDate>Mon, 05 Jan 2026 23:59:00 GMT</pubDate></item></channel></rss>
            """
        let time = Timestamp(seconds: 1_767_657_540)
        #expect(
            try entries(rss, .rss) == [
                ListingEntry(reference: "http://h/1.mp3", bytes: 9, modifiedAt: time),
                ListingEntry(reference: "2.mp3", modifiedAt: time),
            ])
        let atom = """
            <feed xmlns="http://www.w3.org/2005/Atom"><entry><updated>2026-01-05T23:59:00Z</updated>
            <link href="http://h/x"/><link rel="enclosure" href="3.mp3" length="7"/></entry></feed>
            """
        #expect(try entries(atom, .rss) == [ListingEntry(reference: "3.mp3", bytes: 7, modifiedAt: time)])
    }

    @Test("Objects, common prefixes and the token for the next part")
    func objects() throws {
        let text = """
            <?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>
            <IsTruncated>true</IsTruncated><NextContinuationToken>t=1</NextContinuationToken>
            <Contents><Key>a/</Key><Size>0</Size></Contents>
            <Contents><Key>a/x y&amp;z%.mp4</Key><LastModified>2026-01-05T23:59:00.000Z</LastModified><Size>12</Size></Contents>
            <CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes></ListBucketResult>
            """
        let listing = try Listing(Array(text.utf8), as: .s3, now: Self.now)
        #expect(listing.continuation == "t=1")
        #expect(
            listing.entries == [
                ListingEntry(reference: "./a/", isFolder: true),
                ListingEntry(
                    reference: "./a/x%20y&z%25.mp4", bytes: 12, modifiedAt: Timestamp(seconds: 1_767_657_540)),
                ListingEntry(reference: "./a/b/", isFolder: true),
            ])
    }

    @Test("Properties with another status than 200 are ignored")
    func webdav() throws {
        let text = """
            <D:multistatus xmlns:D="DAV:"><D:response><D:href>/dav/a</D:href><D:propstat><D:prop><D:resourcetype>\
            <D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
            <D:response><D:href>/dav/a/b%20c.mp4</D:href><D:propstat><D:prop><D:getcontentlength>8</D:getcontentlength>\
            <D:resourcetype/></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat><D:propstat><D:prop>\
            <D:getlastmodified>Mon, 05 Jan 2026 23:59:00 GMT</D:getlastmodified></D:prop>\
            <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response></D:multistatus>
            """
        #expect(
            try entries(text, .webdav) == [
                ListingEntry(reference: "/dav/a/", isFolder: true),
                ListingEntry(reference: "/dav/a/b%20c.mp4", bytes: 8),
            ])
    }

    @Test("A malformed listing is refused", arguments: [ListingFormat.s3, .webdav, .rss])
    func malformed(format: ListingFormat) {
        for text in ["", "<a/>", "<html><a href='x'>", "<!DOCTYPE x><ListBucketResult/>"] {
            #expect(throws: CacheError.self, "\(text)") { try entries(text, format) }
        }
    }

    @Test("More entries than the limit are refused")
    func tooMany() {
        let lines = String(repeating: "a\n", count: Listing.entryLimit + 1)
        #expect(throws: CacheError.self) { try entries(lines, .text) }
        let links = String(repeating: "<a href=x>", count: Listing.entryLimit + 1)
        #expect(throws: CacheError.self) { try entries(links, .html) }
    }

    @Test("The format is recognised by the text, else by the media type")
    func detection() {
        func format(_ text: String, _ type: String? = nil) -> ListingFormat? {
            Listing.format(of: Array(text.utf8), contentType: type)
        }
        #expect(format("<?xml version='1.0'?>\n<ListBucketResult>") == .s3)
        #expect(format("<rss>") == .rss)
        #expect(format("\n<!DOCTYPE html>") == .html)
        #expect(format(" [") == .json)
        #expect(format("a.mp4", "text/plain; charset=utf-8") == .text)
        #expect(format("a.mp4", "video/mp4") == nil)
    }
}
