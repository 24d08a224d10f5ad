import CacheCore
import ReaderAccess
import TestChance
import Testing

struct ReaderTests {
    private let reader = Reader(id: "a", scope: .read, prefixes: ["/o/media/pub/"])

    @Test(
        "Paths below the prefix are admitted, in all spellings of their characters",
        arguments: [
            "/o/media/pub/a.mp4", "/o/media/pub/", "/o/media/pub/x/y", "/o/media/%70ub/a.mp4", "/o/media/p%75%62/a",
            "/o/media/pub/a%0A", "/o/media/pub/a%7F", "/o/media/pub%2Fa", "/o/media/pub/a..b", "/o/media/pub/.hidden",
            "/o/media/pub/...", "/o/media/pub//a",
            "/o/media/pub/%252e%252e/a", "/o/media/pub/a%3Fb", "/o/media/pub/é", "/%6F/media/pub/a",
        ])
    func below(_ path: String) {
        #expect(reader.limits.admits(origin: "media", path: path))
    }

    @Test(
        "Paths outside the prefix, and those that could leave it, are not admitted",
        arguments: [
            "/o/media/pub", "/o/media/public/a", "/o/media/secret/a", "/o/media/PUB/a", "/o/media/pubx/a", "", "o", "/",
            "/o/media/pub/../secret", "/o/media/pub/..", "/o/media/pub/.", "/o/media/pub/./a", "/o/media/x/../pub/a",
            "/o/media/pub/%2e%2e/secret", "/o/media/pub/.%2E/secret", "/o/media/pub/%2e/a", "/o/media/pub/..%2Fsecret",
            "/o/media/pub/..%2fsecret", "/o/media/pub/x%2F..%2F..%2Fsecret", "/o/media/pub/%2e%2e%2fsecret",
            "/o/media/pub%2F..%2Fsecret", #"/o/media/pub/..\secret"#, "/o/media/pub/..%5Csecret",
            "/o/media/pub/x%5c..%5c..%5csecret", "/o/media/pub//../secret", "/o/media//pub/a", "//o/media/pub/a",
            "/o/media/pub/a%00", "/o/media/pub/%", "/o/media/pub/%zz",
            "/o/media/pub/a%2", "o/media/pub/a", "http://h/o/media/pub/a", "/o/media/p\u{75}\u{308}b/a",
            "/o/other/../media/pub/a",
        ])
    func outside(_ path: String) {
        #expect(!reader.limits.admits(origin: "media", path: path))
    }

    @Test("A reader has at most the rights of another one")
    func rights() {
        let end = Timestamp(seconds: 1_800_000_000)
        let boss = Reader(id: "boss", scope: .admin)
        #expect(boss.member(exceededBy: Reader(id: "x", scope: .admin, isSharedCache: true)) == nil)
        #expect(Reader(id: "w", scope: .write).member(exceededBy: boss) == "scope")
        #expect(Reader(id: "w", scope: .sign).member(exceededBy: Reader(id: "x", scope: .read)) == "scope")
        let own = Reader(
            id: "own", scope: .admin, prefixes: ["/o/media/a/"], expiresAt: end, maxBytesPerSecond: 10,
            maxSignatureSeconds: 60)
        func other(
            _ scope: AccessScope = .read, prefixes: [String]? = ["/o/media/a/b/"], until: Timestamp? = end,
            rate: Int64? = 10, validity: Int64? = nil, shared: Bool = false
        ) -> Reader {
            Reader(
                id: "x", scope: scope, prefixes: prefixes, expiresAt: until, maxBytesPerSecond: rate,
                maxSignatureSeconds: validity, isSharedCache: shared)
        }
        #expect(own.member(exceededBy: own) == nil && own.member(exceededBy: other()) == nil)
        #expect(own.member(exceededBy: other(prefixes: nil)) == "prefixes")
        #expect(own.member(exceededBy: other(prefixes: ["/o/media/"])) == "prefixes")
        #expect(own.member(exceededBy: other(prefixes: [])) == nil)
        #expect(own.member(exceededBy: other(until: nil)) == "expiresAt")
        #expect(own.member(exceededBy: other(until: end + .milliseconds(1))) == "expiresAt")
        #expect(own.member(exceededBy: other(rate: nil)) == "maxBytesPerSecond")
        #expect(own.member(exceededBy: other(rate: 11)) == "maxBytesPerSecond")
        #expect(own.member(exceededBy: other(.sign)) == "maxSignatureSeconds")
        #expect(own.member(exceededBy: other(.sign, validity: 61)) == "maxSignatureSeconds")
        #expect(own.member(exceededBy: other(.sign, validity: 60)) == nil)
        #expect(own.member(exceededBy: other(shared: true)) == "sharedCache")
        let ofOrigin = Reader(id: "o", scope: .admin, origins: ["media"])
        #expect(ofOrigin.member(exceededBy: other()) == nil)
        #expect(ofOrigin.member(exceededBy: Reader(id: "x", scope: .read, origins: ["media", "films"])) == "origins")
        #expect(ofOrigin.member(exceededBy: Reader(id: "x", scope: .read, prefixes: ["/o/media"])) == "origins")
    }

    @Test("The boundary of a prefix is that of its text")
    func boundary() {
        let reader = Reader(id: "a", scope: .read, prefixes: ["/o/media/pub"])
        #expect(reader.limits.admits(origin: "media", path: "/o/media/public/a"))
        #expect(reader.limits.admits(origin: "media", path: "/o/media/pub"))
        #expect(!reader.limits.admits(origin: "media", path: "/o/media/pu"))
    }

    @Test("A prefix counts in its decoded form, so its own spelling does not matter")
    func spelling() {
        for prefix in ["/o/m/Gro\u{DF}/", "/o/m/Gro%C3%9F/", "/o/m/%47ro%c3%9f/"] {
            let reader = Reader(id: "a", scope: .read, prefixes: [prefix])
            #expect(reader.limits.admits(origin: "m", path: "/o/m/Gro%C3%9F/a"))
            #expect(reader.limits.admits(origin: "m", path: "/o/m/Gro\u{DF}/a"))
            #expect(!reader.limits.admits(origin: "m", path: "/o/m/Gross/a"))
        }
        // Canonically equivalent texts are different paths.
        let composed = Reader(id: "a", scope: .read, prefixes: ["/o/m/\u{E9}/"])
        #expect(!composed.limits.admits(origin: "m", path: "/o/m/e\u{301}/a"))
    }

    @Test("Origins limit a reader, together with prefixes")
    func origins() {
        let reader = Reader(id: "a", scope: .read, origins: ["media"], prefixes: ["/o/"])
        #expect(reader.limits.admits(origin: "media", path: "/o/media/a"))
        #expect(!reader.limits.admits(origin: "other", path: "/o/other/a"))
        #expect(!Reader(id: "a", scope: .admin, origins: []).limits.admits(origin: "media", path: "/o/media/a"))
    }

    @Test("Without limits every path is admitted; an empty list or invalid prefixes admit none")
    func unlimited() {
        #expect(Reader(id: "a", scope: .read).limits.admits(origin: "x", path: "/o/x/../y"))
        #expect(!Reader(id: "a", scope: .read).isLimited)
        for prefixes in [[], ["o/"], ["/o/../"], ["/o/%"], [""]] {
            let reader = Reader(id: "a", scope: .read, prefixes: prefixes)
            #expect(!reader.limits.admits(origin: "media", path: "/o/media/a"))
            #expect(reader.isLimited)
        }
    }

    @Test("A random path that is admitted stays below the prefix for every common way to resolve it")
    func randomPaths() {
        var (random, seed) = SeededRandom.announced()
        let pieces = [
            "/", "//", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", #"\"#, "pub", "secret", "%252e", "%70ub", "a", "%",
            ";x", "?", "#", "%00",
        ]
        var admitted = 0
        for _ in 0..<20_000 {
            var path = Bool.random(using: &random) ? "/o/media/pub/" : "/o/media/"
            for _ in 0..<Int.random(in: 0..<8, using: &random) {
                path += pieces[Int.random(in: 0..<pieces.count, using: &random)]
            }
            guard reader.limits.admits(origin: "media", path: path) else { continue }
            admitted += 1
            for resolved in Self.resolutions(path) {
                #expect(resolved.hasPrefix("/o/media/pub/"), "seed \(seed): \(path) resolves to \(resolved)")
            }
        }
        #expect(admitted > 500)
    }

    /// The path as servers could understand it: with or without decoding, merged slashes and backslashes as slashes.
    private static func resolutions(_ path: String) -> [String] {
        let decoded = String(decoding: PercentEncoding.decoded(path), as: UTF8.self)
        return [decoded, decoded.replacing("\\", with: "/")].flatMap { text in
            [false, true].map { merges in
                var kept: [Substring] = []
                for segment in text.split(separator: "/", omittingEmptySubsequences: merges).drop(while: \.isEmpty) {
                    switch segment {
                    case ".": break
                    case "..": _ = kept.popLast()
                    default: kept.append(segment)
                    }
                }
                return "/" + kept.joined(separator: "/") + "/"
            }
        }
    }
}
