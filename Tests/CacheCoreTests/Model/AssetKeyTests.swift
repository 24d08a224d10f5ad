import CacheCore
import Testing
import TestChance

@Suite struct AssetKeyTests {
    private static func origin(_ keyQuery: OriginSettings.KeyQuery = .all, base: String = "http://h/films") -> Origin {
        var settings = OriginSettings(baseURL: base)
        settings.keyQuery = keyQuery
        return Origin(name: "films", settings: settings)
    }

    private static func key(
        _ path: String, query: String? = nil, _ keyQuery: OriginSettings.KeyQuery = .all
    ) throws(CacheError) -> String {
        try AssetKey.mounted(origin: origin(keyQuery), path: path, query: query) { "<\($0)>" }.text
    }

    @Test(
        "Normalizes the path",
        arguments: [
            ("a/b.mp4", "/o/films/a/b.mp4"), ("%61/%7e%2D%5f", "/o/films/a/~-_"), ("a%2fb%3f", "/o/films/a%2Fb%3F"),
            ("a b\u{E9}", "/o/films/a%20b%C3%A9"), ("a//b/", "/o/films/a//b/"), ("/a", "/o/films//a"),
            ("", "/o/films/"),
            ("a/./b", "/o/films/a/b"), ("a/../b", "/o/films/b"), ("a/b/..", "/o/films/a/"), ("a/b/.", "/o/films/a/b/"),
            ("a/%2e%2E/b", "/o/films/b"), ("a/%2e/b", "/o/films/a/b"), ("a//../b", "/o/films/a/b"),
            ("...", "/o/films/..."),
            ("a..b/..c", "/o/films/a..b/..c"), ("a?b#c", "/o/films/a%3Fb%23c"), ("a[1]|^", "/o/films/a%5B1%5D%7C%5E"),
            ("a:b@c;d=1,2!$&'()*+", "/o/films/a:b@c;d=1,2!$&'()*+"), ("%252e%252e/a", "/o/films/%252e%252e/a"),
            ("%2500", "/o/films/%2500"),
        ])
    func normalisesThePath(path: String, key: String) throws {
        #expect(try Self.key(path) == key)
    }

    @Test(
        "Rejects malformed paths and paths that climb",
        arguments: [
            "..", "../a", "a/../../b", "%2e%2e/a", "./../a", ".%2E", "..%2fa", "a/..%2f..%2f..%2fb", "a%2f..%2fb",
            "..%5Ca",
            "a\\..\\..\\b", "%", "a%2", "a%zz", "%%41", "a/b/../../..", "a%00b", "\u{0}",
        ])
    func refusesPathsThatClimbOrAreBroken(path: String) {
        Self.expect(.malformedRequest) { () throws(CacheError) in _ = try Self.key(path) }
    }

    private static let queries: [(String?, OriginSettings.KeyQuery, String)] = [
        (nil, .all, ""), ("", .all, "?<>"), ("", .none, ""), ("", .exclude(["a"]), ""), ("b=1&a=2", .all, "?<b=1&a=2>"),
        ("b=1&a=2", .none, ""),
        ("b=1&a=2&b=3&c", .include(["b", "c"]), "?<b=1&b=3&c>"), ("sig=1&a=2&sig", .exclude(["sig"]), "?<a=2>"),
        ("sig=1", .exclude(["sig"]), ""), ("a=1", .include(["x"]), ""), ("%73ig=1&a", .exclude(["sig"]), "?<a>"),
        ("a=%7e%2f%zz", .all, "?<a=~%2F%25zz>"), ("&&a=1&", .include(["a"]), "?<a=1>"),
    ]

    @Test("Keeps the significant query as a digest", arguments: queries)
    func keepsTheSignificantQueryAsADigest(query: String?, keyQuery: OriginSettings.KeyQuery, suffix: String) throws {
        #expect(try Self.key("a", query: query, keyQuery) == "/o/films/a" + suffix)
    }

    @Test(
        "The parameter CMCD belongs to the key and to the upstream request as the origin says",
        arguments: [
            (OriginSettings.CMCD.strip, "?<v=7>", "?v=7"), (.forward, "?<v=7>", "?v=7&CMCD=x"),
            (.key, "?<v=7&CMCD=x>", "?v=7&CMCD=x"),
        ])
    func usesCMCD(cmcd: OriginSettings.CMCD, keySuffix: String, urlSuffix: String) throws {
        var origin = Self.origin()
        origin.settings.cmcd = cmcd
        let key = try AssetKey.mounted(origin: origin, path: "a", query: "v=7&CMCD=x") { "<\($0)>" }
        #expect(key.text == "/o/films/a" + keySuffix)
        let url = try AssetKey.upstreamURL(origin: origin, path: "a", query: "v=7&CMCD=x")
        #expect(url == "http://h/films/a" + urlSuffix)
        let absolute = UpstreamURL(
            scheme: .https, host: "h", port: 443, path: "/a", query: "CMCD=x", text: "https://h/a?CMCD=x")
        #expect(AssetKey.absolute(absolute) { $0 }.text == "https://h/a")
    }

    @Test("A mounted key contains the name of its origin")
    func aMountedKeyHasItsOriginsName() throws {
        let key = try AssetKey.mounted(origin: Self.origin(), path: "a", query: nil) { $0 }
        #expect(key.originName == "films")
    }

    @Test("An absolute key has no query in plain text")
    func anAbsoluteKeyHasNoQueryInTheClear() {
        let url = UpstreamURL(
            scheme: .https, host: "h", port: 443, path: "/%7ea/b", query: "sig=1", text: "https://h/%7ea/b?sig=1")

        let key = AssetKey.absolute(url) { "<\($0)>" }

        #expect(key.text == "https://h/~a/b?<sig=1>")
        #expect(key.originName == Origin.absoluteName)
    }

    @Test("An absolute key without a query has no digest")
    func anAbsoluteKeyWithoutAQueryHasNoDigest() {
        let url = UpstreamURL(scheme: .http, host: "::1", port: 81, path: "/a", query: nil, text: "http://[::1]:81/a")
        #expect(AssetKey.absolute(url) { "<\($0)>" }.text == "http://[::1]:81/a")
    }

    @Test(
        "Accepts a caller-supplied key unchanged",
        arguments: ["a", "film 7/é", String(repeating: "k", count: 512), "a:/b", "a/b"])
    func takesACallersKeyAsItIs(text: String) throws {
        #expect(try AssetKey.named(text).text == text)
        #expect(try AssetKey.named(text, originName: "films").originName == "films")
    }

    @Test(
        "Rejects ambiguous keys",
        arguments: [
            "", String(repeating: "k", count: 2049), "a\nb", "a\u{0}", "a\u{85}b", "/o/films/a", "/\u{301}",
            "http://h/a",
            "a://\u{301}b",
        ])
    func refusesKeysThatCouldBeTakenForOthers(text: String) {
        Self.expect(.invalidField("key")) { () throws(CacheError) in _ = try AssetKey.named(text) }
    }

    @Test(
        "Joins the upstream URL",
        arguments: [
            ("http://h", "a", nil, "http://h/a"), ("http://h/", "a", nil, "http://h/a"),
            ("http://h/p", "a", "", "http://h/p/a?"),
            ("http://h/p/", "%7ea/../b", "x=%7e&y=1", "http://h/p/b?x=%7e&y=1"),
            ("http://h/p//", "a", nil, "http://h/p//a"),
            ("http://h", "/a", nil, "http://h//a"), ("http://h", "a", "x=a b#\u{E9}", "http://h/a?x=a%20b%23%C3%A9"),
        ] as [(String, String, String?, String)])
    func joinsTheUpstreamURL(base: String, path: String, query: String?, url: String) throws {
        let origin = Self.origin(.none, base: base)
        #expect(try AssetKey.upstreamURL(origin: origin, path: path, query: query) == url)
    }

    @Test("Normalization is idempotent")
    func normalisingTwiceChangesNothing() throws {
        var (random, seed) = SeededRandom.announced()
        let alphabet = Array("ab/.%2eEfF~ ?é\\".unicodeScalars)
        for _ in 0..<3000 {
            var text = ""
            for _ in 0..<Int.random(in: 0..<14, using: &random) {
                text.unicodeScalars.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)])
            }
            guard let once = try? Self.key(text) else { continue }  // another test covers invalid paths
            #expect(try Self.key(String(once.dropFirst("/o/films/".count))) == once, "seed \(seed)")
        }
    }

    static func expect(
        _ code: CacheError.Code, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws(CacheError) -> Void
    ) {
        do {
            try body()
            Issue.record("No error was thrown; expected \(code.name).", sourceLocation: sourceLocation)
        } catch {
            #expect(error.code == code, sourceLocation: sourceLocation)
        }
    }
}
