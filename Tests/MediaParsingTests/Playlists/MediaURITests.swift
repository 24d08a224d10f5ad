import Testing

import CacheCore
@testable import MediaParsing

/// Reference resolution.
struct MediaURITests {
    /// The examples of RFC 3986 §5.4.1 and §5.4.2, without fragments, with an http base.
    @Test(
        "The examples of RFC 3986 are resolved",
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
            ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ])
    func rfcExamples(reference: String, url: String) {
        #expect(MediaURI.resolved(reference, against: "http://a/b/c/d;p?q") == url)
    }

    @Test("Absolute and scheme-relative references replace the host")
    func absolute() {
        let base = "https://cdn.example/v/index.m3u8?token=1"
        #expect(MediaURI.resolved("HTTP://b.example:8080/x", against: base) == "http://b.example:8080/x")
        #expect(MediaURI.resolved("//b.example/x?y", against: base) == "https://b.example/x?y")
        #expect(MediaURI.resolved("https://b.example", against: base) == "https://b.example/")
        #expect(MediaURI.resolved("a//b", against: base) == "https://cdn.example/v/a//b")
        #expect(MediaURI.resolved("seg.ts", against: "https://cdn.example") == "https://cdn.example/seg.ts")
        #expect(MediaURI.resolved("seg.ts", against: "https://cdn.example?x") == "https://cdn.example/seg.ts")
    }

    @Test("User info is removed")
    func userInfo() {
        let base = "https://name:secret@cdn.example/v/index.m3u8"
        #expect(MediaURI.resolved("a.ts", against: base) == "https://cdn.example/v/a.ts")
        #expect(MediaURI.resolved("http://u:p@b.example:81/a@b", against: base) == "http://b.example:81/a@b")
        #expect(MediaURI.resolved("//u@p@b.example/a", against: base) == "https://b.example/a")
        #expect(MediaURI.withoutUserInfo("ftp://u:p@b.example/a?x") == "ftp://b.example/a?x")
        #expect(MediaURI.withoutUserInfo("a@b.ts") == "a@b.ts")
    }

    @Test("Encoded dot segments are removed, and bytes that no URL contains are encoded (RFC 3986 §2)")
    func encoding() {
        #expect(MediaURI.resolved("%2e%2E/g", against: "http://a/b/c/d") == "http://a/b/g")
        #expect(MediaURI.resolved("a b/ü.ts", against: "http://a/") == "http://a/a%20b/%C3%BC.ts")
        #expect(MediaURI.resolved("a%2Fb", against: "http://a/") == "http://a/a%2Fb")
        #expect(
            MediaURI.resolved("a[1]|{b}%.ts?t=<%7e>", against: "http://a/")
                == "http://a/a%5B1%5D%7C%7Bb%7D%25.ts?t=%3C%7e%3E")
        #expect(MediaURI.resolved("a.ts", against: "http://[::1]:80/x") == "http://[::1]:80/a.ts")
    }

    @Test(
        "Other schemes, missing hosts and control characters have no URL",
        arguments: [
            "skd://key", "data:text/plain,x", "file:///etc/passwd", "ftp://a/b", "http:///x", "http://", "http:g",
            "http://:80/", "a\u{0}b", "a\nb", "a\u{7F}",
        ])
    func refused(reference: String) {
        #expect(MediaURI.resolved(reference, against: "http://a/b") == nil)
    }

    @Test("A base that is not an http URL has no relative references")
    func base() {
        #expect(MediaURI.resolved("x", against: "file:///a/b") == nil)
        #expect(MediaURI.resolved("x", against: "a/b") == nil)
        #expect(MediaURI.resolved("x", against: "http://a/\r\n") == nil)
        #expect(MediaURI.resolved("http://b/x", against: "") == "http://b/x")
    }

    @Test("Relative references are joined without removing dot segments")
    func joined() {
        #expect(MediaURI.joined("../c", to: "a/b/") == "a/b/../c")
        #expect(MediaURI.joined("c", to: "..") == "../c")
        #expect(MediaURI.joined("c", to: "a/b") == "a/c")
        #expect(MediaURI.joined("/c", to: "https://h/a/b") == "https://h/c")
        #expect(MediaURI.joined("", to: "a/b?x") == "a/b?x")
        #expect(MediaURI.joined("c", to: "") == "c")
        #expect(MediaURI.joined("http://h/c", to: "a") == "http://h/c")
    }
}
