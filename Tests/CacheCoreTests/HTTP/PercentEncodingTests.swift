import CacheCore
import Testing

@Suite struct PercentEncodingTests {
    @Test("Normalizes paths")
    func writesPathsInNormalForm() {
        #expect(PercentEncoding.normalized(path: "/%7Euser/%e4?%2f") == "/~user/%E4%3F%2F")
        #expect(PercentEncoding.normalized(path: "%4") == nil)
        #expect(PercentEncoding.normalized(path: "%g0") == nil)
    }

    @Test("Normalizes queries")
    func writesQueriesInNormalForm() {
        #expect(PercentEncoding.normalized(query: "a=%7e&b=1+2?/:@") == "a=~&b=1+2?/:@")
        #expect(PercentEncoding.normalized(query: "100%&x=%") == "100%25&x=%25")
        #expect(PercentEncoding.normalized(query: "é #") == "%C3%A9%20%23")
    }

    @Test("Queries are sent unchanged except for invalid bytes")
    func sendsQueriesAsTheyAre() {
        #expect(PercentEncoding.sendable(query: "sig=%2f%7e+|^") == "sig=%2f%7e+|^")
        #expect(PercentEncoding.sendable(query: "a b\r\n\u{7F}é#") == "a%20b%0D%0A%7F%C3%A9%23")
    }

    @Test("RFC 3986 §3.3, §3.4: paths and queries of URLs have no other bytes, and escapes stay as written")
    func encodesInvalidBytes() {
        #expect(
            PercentEncoding.valid(path: "/a b\"<>\\^`{|}[]%2d%zz%4?#é")
                == "/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D%2d%25zz%254%3F%23%C3%A9")
        #expect(PercentEncoding.valid(path: "/-._~!$&'()*+,;=:@") == "/-._~!$&'()*+,;=:@")
        #expect(PercentEncoding.valid(query: "a[]=%7E&b=/?\u{0}%") == "a%5B%5D=%7E&b=/?%00%25")
    }

    @Test("Decodes bytes")
    func decodesBytes() {
        #expect(PercentEncoding.decoded("a%2Fb%ff%") == Array("a/b".utf8) + [0xFF] + Array("%".utf8))
        #expect(PercentEncoding.decoded("%%41") == Array("%A".utf8))
    }
}
