import CacheCore
import Testing

@testable import CurlUpstream

struct URLTests {
    /// A URL with its expected normal form and components.
    struct Case: Sendable {
        let text: String
        let normal: String
        let host: String
        let port: Int
        let path: String
        let query: String?

        init(_ text: String, _ normal: String, _ host: String, _ port: Int, _ path: String, _ query: String? = nil) {
            self.text = text
            self.normal = normal
            self.host = host
            self.port = port
            self.path = path
            self.query = query
        }
    }

    @Test(
        "A URL is parsed and normalized",
        arguments: [
            Case("http://media.example/a.mp4", "http://media.example/a.mp4", "media.example", 80, "/a.mp4"),
            Case("HTTPS://Media.Example", "https://media.example/", "media.example", 443, "/"),
            Case(
                "https://media.example:443/a?b=c&d", "https://media.example/a?b=c&d", "media.example", 443, "/a",
                "b=c&d"),
            Case("http://media.example:80/", "http://media.example/", "media.example", 80, "/"),
            Case("http://media.example:8080/a", "http://media.example:8080/a", "media.example", 8080, "/a"),
            Case("http://media.example?q=1", "http://media.example/?q=1", "media.example", 80, "/", "q=1"),
            Case("http://media.example/a#part", "http://media.example/a", "media.example", 80, "/a"),
            Case("http://media.example/a/../b/./c", "http://media.example/b/c", "media.example", 80, "/b/c"),
            Case("http://media.example/a%20b", "http://media.example/a%20b", "media.example", 80, "/a%20b"),
            Case("http://media.example/a b", "http://media.example/a%20b", "media.example", 80, "/a%20b"),
            Case("http://media.example/ä", "http://media.example/%c3%a4", "media.example", 80, "/%c3%a4"),
            Case("http://[2001:DB8::1]:81/a", "http://[2001:db8::1]:81/a", "2001:db8::1", 81, "/a"),
            Case("http://127.1/a", "http://127.0.0.1/a", "127.0.0.1", 80, "/a"),
            Case("http://bücher.example/", "http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, "/"),
        ])
    func aURLIsTakenApartAndMadeNormal(_ expected: Case) throws {
        let url = try CurlURL.parse(expected.text)
        #expect(url.text.lowercased() == expected.normal)
        #expect(url.host == expected.host)
        #expect(url.port == expected.port)
        #expect(url.path.lowercased() == expected.path)
        #expect(url.query == expected.query)
        #expect(try CurlURL.parse(url.text) == url, "normalization must be idempotent")
    }

    @Test(
        "A URL that cannot be fetched is rejected with a reason",
        arguments: [
            ("", "http"), ("media.example/a", "http"), ("/a", "http"), ("ftp://media.example/", "http"),
            ("file:///etc/passwd", "http"), ("mailto:a@b", "http"), ("http://", "host"),
            ("http://user@media.example/", "user name"), ("http://user:word@media.example/", "user name"),
            ("http://media.example:0/", "port"), ("http://media.example:65536/", "port"),
            ("http://media.example:x/", "port"),
            ("http://media.example/\r\nX: y", "control"),
            ("http://media.example/\0", "control"), ("http://[fe80::1%25eth0]/", "zone"), ("http://[::1/", "host"),
        ])
    func whatIsNoFetchableURLIsRefusedWithAReason(_ text: String, _ word: String) {
        let error = #expect(throws: CacheError.self) { try CurlURL.parse(text) }
        #expect(error?.code == .malformedRequest)
        #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
    }

    @Test("A URL has a length limit")
    func aURLHasALimit() throws {
        let longest = "http://media.example/" + String(repeating: "a", count: 8192 - 21)
        #expect(try CurlURL.parse(longest).text == longest)
        #expect(throws: CacheError.self) { try CurlURL.parse(longest + "a") }
    }
}
