import CacheCore
import Testing

@Suite struct StoredHeadersTests {
    @Test("Keeps end-to-end fields in order")
    func keepsEndToEndFieldsInOrder() {
        let headers: HeaderList = [
            "X-B": "1", "Content-Disposition": "inline", "X-A": "2", "x-b": "3", "Cache-Control": "max-age=1",
            "Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Via": "1.1 edge", "Cache-Status": "edge;hit",
        ]

        #expect(StoredHeaders.of(headers) == headers)
    }

    @Test(
        "Drops fields that do not describe the content",
        arguments: [
            "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
            "Set-Cookie",
            "Age", "Content-Length", "Content-Range", "Accept-Ranges", "ETag", "Last-Modified", "Content-Type",
            "Access-Control-Allow-Origin", "set-cookie", "Larder-Asset-Id", "Strict-Transport-Security", "X-Request-Id",
            "bad name", "", "Content-Digest",
        ])
    func dropsWhatIsNotTheContents(name: String) {
        #expect(StoredHeaders.of(HeaderList([.init(name, "x"), .init("X-Kept", "1")])) == ["X-Kept": "1"])
    }

    @Test("Drops fields named by Connection")
    func dropsWhatTheConnectionNames() {
        #expect(StoredHeaders.of(["X-Hop": "1", "Connection": "close, x-hop", "X-Kept": "1"]) == ["X-Kept": "1"])
    }

    @Test("Drops fields named by a qualified directive")
    func dropsWhatAQualifiedDirectiveNames() {
        let headers: HeaderList = [
            "Cache-Control": "no-cache=\"X-User, x-seen\", private=X-Own", "X-Own": "1", "X-User": "1",
        ]
        #expect(StoredHeaders.of(headers).fields.map(\.name) == ["Cache-Control"])
    }

    @Test("Drops values that are invalid in a head", arguments: ["a\r\nX-Injected: 1", "a\u{0}", "a\u{7F}"])
    func dropsValuesThatWouldBreakAHead(value: String) {
        #expect(StoredHeaders.of(["X-A": value]) == [:])
    }

    @Test("Keeps no more than the limits")
    func keepsNoMoreThanTheLimits() {
        let many = HeaderList((0..<300).map { .init("X-\($0)", "1") })
        #expect(StoredHeaders.of(many).fields == Array(many.fields.prefix(StoredHeaders.maxFields)))

        let large = HeaderList([
            .init("X-Large", String(repeating: "a", count: StoredHeaders.maxBytes)), .init("X-Small", "1"),
        ])
        #expect(StoredHeaders.of(large) == ["X-Small": "1"])
    }

    @Test("Fields that caches must obey are kept despite many other fields")
    func keepsCachingFieldsFirst() {
        let many = HeaderList(
            (0..<300).map { .init("X-\($0)", "1") } + [.init("Cache-Control", "private"), .init("Vary", "X-A")])

        let kept = StoredHeaders.of(many).fields

        #expect(kept.count == StoredHeaders.maxFields)
        #expect(kept.suffix(2).map(\.name) == ["Cache-Control", "Vary"])
        #expect(kept.first?.name == "X-0")
    }
}
