import CacheCore
import TestChance
import Testing
import WebTokens

@testable import ReaderAccess

struct ContentSignaturesTests {
    private let now = Timestamp(seconds: 1_800_000_000)
    private let end = Timestamp(seconds: 1_800_000_600)

    private func keys(_ names: String...) throws -> SigningKeys {
        try SigningKeys(
            files: names.map { name in
                SigningKeys.File(name: name + ".key", content: Array((name + String(repeating: "x", count: 32)).utf8))
            })
    }

    /// Verifies a URL as a server does: strips the signature, then verifies it for the rest. Nil without a signature.
    private func verify(
        _ url: String, _ signatures: ContentSignatures, at time: Timestamp? = nil, base: String = "http://localhost"
    ) throws(AccessRefusal) -> SignatureGrant? {
        let (target, presented) = PresentedSignature.strip(target: url)
        guard let presented else { return nil }
        let mark = target.firstIndex(of: "?")
        return try signatures.verify(
            presented, path: String(target[..<(mark ?? target.endIndex)]),
            remainingQuery: mark.map { String(target[target.index(after: $0)...]) }, base: base, at: time ?? now)
    }

    private func refusal(
        _ url: String, _ signatures: ContentSignatures, at time: Timestamp? = nil
    ) -> AccessRefusal.Reason? {
        do {
            return try verify(url, signatures, at: time) == nil ? .tokenInvalid : nil
        } catch {
            return error.reason
        }
    }

    private func request(
        _ path: String, _ scope: SignatureRequest.Scope, _ form: SignatureRequest.Form, kid: String? = nil
    ) -> SignatureRequest {
        SignatureRequest(path: path, scope: scope, form: form, expiresAt: end, keyID: kid)
    }

    private static let forms = SignatureRequest.Form.allCases

    // MARK: Exact

    @Test("An exact signature is valid for its path and query until its end", arguments: forms)
    func exact(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys, rules: .init(grace: .zero))
        for path in ["/o/media/a.mp4", "/o/media/a.mp4?x=1&y=%7E", "/o/media/Gro\u{DF} (1)/a+b.mp4?", "/o/media/"] {
            let url = try keys.sign(request(path, .exact, form))
            #expect(url.expiresAt == end)
            #expect(url.keyID == "k1")

            let grant = try verify(url.target, signatures)

            #expect(grant?.expiresAt == end)
            #expect(grant?.readerID == "url:k1")
            #expect(grant?.scope == (form == .uriSigning ? .container : .exact))
            #expect(grant?.isGrace == false)
            #expect(try verify(url.target, signatures, at: end - .milliseconds(1)) != nil)
            #expect(refusal(url.target, signatures, at: end) == .tokenExpired)
        }
    }

    @Test("A signed URL has only bytes of RFC 3986, for every character of the path and the query", arguments: forms)
    func urls(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        // RFC 3986 §2: unreserved, reserved and the percent sign of an escape. `#` would begin a fragment.
        let permitted = Set("-._~:/?@!$&'()*+,;=%".utf8)
        let characters = (0x20..<0x7F).map { Character(UnicodeScalar($0)) } + ["\u{E9}", "\u{5168}", "\u{1F3AC}"]
        for character in characters where character != "#" && character != "%" {
            // A container of RFC 9246 covers no path with a backslash.
            if form == .uriSigning, character == "\\" { continue }
            // Dots and `?` are not letters of a name here, and the others can stand in both places.
            let name = "?.".contains(character) ? "x" : String(character)
            for scope in SignatureRequest.Scope.allCases {
                let given = "/o/media/a\(name)b/c\(name)d.mp4?t=\(character)&u=%e9%"
                let url = try keys.sign(request(given, scope, form)).target
                #expect(
                    url.utf8.allSatisfy { FieldText.isLetter($0) || FieldText.isDigit($0) || permitted.contains($0) },
                    "\(url)")
                #expect(try verify(url, signatures) != nil, "\(url)")
                #expect(
                    PresentedSignature.strip(target: url).cleanTarget
                        == (PercentEncoding.normalized(path: String(given.prefix { $0 != "?" })) ?? "") + "?"
                        + PercentEncoding.normalized(query: "t=\(character)&u=%e9%"))
            }
        }
    }

    @Test("A reader that began before the end of its signature may continue with the next process", arguments: forms)
    func usesOfTheFormerProcess(_ form: SignatureRequest.Form) throws {
        guard form != .uriSigning else { return }  // it has no grace
        let keys = try keys("k1")
        let (former, next, other) = (
            ContentSignatures(keys: keys), ContentSignatures(keys: keys), ContentSignatures(keys: keys)
        )
        let url = try keys.sign(request("/o/media/a.mp4", .exact, form)).target
        #expect(try verify(url, former)?.isGrace == false)
        let uses = former.uses(at: end)
        #expect(uses.split(separator: "\n").count == 1 && !uses.contains("media"))
        next.recall(uses: "damaged\n" + uses + "0 1\n")
        #expect(try verify(url, next, at: end + .seconds(1))?.isGrace == true)
        #expect(refusal(url, next, at: end + .seconds(601)) != nil)
        #expect(refusal(url, other, at: end + .seconds(1)) != nil)
        #expect(former.uses(at: end + .seconds(601)).isEmpty)
    }

    @Test("Equivalent percent-encoding of the path is the same path", arguments: forms)
    func equivalent(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let url = try keys.sign(request("/o/media/a~b.mp4", .exact, form)).target
        #expect(try verify(url.replacing("a~b", with: "a%7eb"), signatures) != nil)
        #expect(refusal(url.replacing("a~b", with: "a~%62x"), signatures) != nil)
    }

    @Test("No single changed, removed or added character of an exact URL is accepted", arguments: forms)
    func flippedExact(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1", "k2")
        let signatures = ContentSignatures(keys: keys)
        let url = try keys.sign(request("/o/media/show/a.mp4?x=1", .exact, form, kid: "k1")).target
        #expect(try verify(url, signatures) != nil)
        for index in url.utf8.indices {
            for character in ["A", "b", "/", "%", "."] where String(url[index]) != character {
                var changed = url
                changed.replaceSubrange(index...index, with: character)
                // Any reserved character may stand in front of a package (RFC 9246 §2).
                #expect(
                    refusal(changed, signatures) != nil
                        || form == .uriSigning && url[index] == "&" && character == "/", "\(changed)")
                var longer = url
                longer.insert(contentsOf: character, at: index)
                #expect(refusal(longer, signatures) != nil, "\(longer)")
            }
            var shorter = url
            shorter.remove(at: index)
            #expect(refusal(shorter, signatures) != nil, "\(shorter)")
        }
    }

    @Test("Random changes of signed URLs are refused and never trap", arguments: forms)
    func randomChanges(_ form: SignatureRequest.Form) throws {
        let (_, seed) = SeededRandom.announced()
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let url = try keys.sign(request("/o/media/show/a.mp4", .exact, form)).target
        for number in 0..<3000 as Range<UInt64> {
            let bytes = Mutation.input(number, seed: seed, from: [Array(url.utf8)])
            let text = String(decoding: bytes, as: UTF8.self)
            let (target, presented) = PresentedSignature.strip(target: text)
            guard let presented,
                target != "/o/media/show/a.mp4" || presented != PresentedSignature.strip(target: url).presented
            else { continue }
            #expect(refusal(text, signatures) != nil, "seed \(seed), input \(number)")
        }
    }

    @Test("Another query, or one that is missing, is refused by an exact signature", arguments: forms)
    func query(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let plain = try keys.sign(request("/o/media/a", .exact, form)).target
        let separator = plain.contains("?") ? "&" : "?"
        #expect(refusal(plain + separator + "x=1", signatures) != nil)
        let signed = try keys.sign(request("/o/media/a?x=1", .exact, form)).target
        #expect(refusal(signed.replacing("x=1", with: "x=2"), signatures) != nil)
    }

    // MARK: Prefix

    @Test("A prefix signature is valid for all paths below its directory, with any query", arguments: forms)
    func prefix(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let url = try keys.sign(request("/o/media/sh\u{F6}w/index.m3u8", .prefix, form)).target
        #expect(try verify(url, signatures)?.scope == (form == .uriSigning ? .container : .prefix))
        let file = "sh%C3%B6w/index.m3u8"
        for inside in ["sh\u{F6}w/", "sh%C3%B6w/a/b.ts", "sh%c3%b6w/%61.ts"] {
            #expect(try verify(url.replacing(file, with: inside), signatures) != nil, "\(inside)")
        }
        let separator = url.contains("?") ? "&" : "?"
        #expect(try verify(url + separator + "range=1", signatures) != nil)
        for outside in [
            "sh\u{F6}w", "sh\u{F6}x/a", "show/a", "sh\u{F6}w/../a", "sh\u{F6}w/%2e%2e/a", "sh\u{F6}w/..%2Fa", "a", "",
            "sh\u{F6}w/..\\a", "sh\u{F6}w%2f..%2fa",
        ] {
            #expect(refusal(url.replacing(file, with: outside), signatures) == .tokenScope, "\(outside)")
        }
    }

    @Test("No single changed character of the signature of a prefix URL is accepted", arguments: forms)
    func flippedPrefix(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1", "k2")
        let signatures = ContentSignatures(keys: keys)
        let path = "/o/media/show/a.m3u8"
        let url = try keys.sign(request(path, .prefix, form, kid: "k1")).target
        let signed = form == .path ? url.dropLast(path.count) : url.dropFirst(path.count)
        for index in signed.utf8.indices {
            var changed = url
            changed.replaceSubrange(index...index, with: url[index] == "A" ? "B" : "A")
            #expect(refusal(changed, signatures) != nil, "\(changed)")
        }
        if form == .query {
            // A wider or missing prefix, and a prefix added to an exact signature.
            #expect(refusal(url.replacing("prefix=/o/media/show/", with: "prefix=/o/"), signatures) == .tokenInvalid)
            #expect(refusal(url.replacing("&prefix=/o/media/show/", with: ""), signatures) == .tokenInvalid)
            let exact = try keys.sign(request(path, .exact, form)).target
            #expect(refusal(exact + "&prefix=/o/media/show/", signatures) == .tokenInvalid)
            #expect(refusal(exact + "&prefix=\(path)", signatures) == .tokenInvalid)
            // An encoded prefix is the same prefix.
            #expect(
                try verify(url.replacing("prefix=/o/media/show/", with: "prefix=%2Fo%2Fmedia%2Fshow%2F"), signatures)
                    != nil)
        }
    }

    @Test("Relative URIs of a playlist inherit the token of its path")
    func inheritance() throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let url = try keys.sign(request("/o/media/show/index.m3u8", .prefix, .path)).target
        let directory = url.prefix { _ in true }.split(separator: "/").dropLast().joined(separator: "/")
        #expect(try verify("/\(directory)/video/1080p.m3u8", signatures)?.scope == .prefix)
        #expect(refusal("/\(directory)/../other/a", signatures) == .tokenScope)
    }

    @Test("A signature for content is no permission for other routes")
    func otherRoutes() throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let presented = try #require(
            PresentedSignature.strip(target: try keys.sign(request("/o/media/a", .exact, .query)).target).presented)
        for path in ["/v1/stats", "/", "", "o/media/a", "//o/media/a", "/o/media/./a"] {
            let refusal = #expect(throws: AccessRefusal.self) {
                try signatures.verify(presented, path: path, remainingQuery: nil, at: now)
            }
            #expect(refusal?.reason == .tokenScope)
        }
    }

    // MARK: Keys

    @Test("Several keys are valid at once; a removed key ends its signatures at once", arguments: forms)
    func rotation(_ form: SignatureRequest.Form) throws {
        let both = try keys("k1", "k2")
        let signatures = ContentSignatures(keys: try keys("k1"))
        let first = try keys("k1").sign(request("/o/media/a", .exact, form)).target
        let second = try both.sign(request("/o/media/a", .exact, form)).target
        #expect(try verify(first, signatures) != nil)
        #expect(refusal(second, signatures) == .tokenInvalid)
        signatures.update(keys: both)
        #expect(try verify(first, signatures)?.keyID == "k1")
        #expect(try verify(second, signatures)?.keyID == "k2")
        signatures.update(keys: try keys("k2"))
        #expect(refusal(first, signatures) == .tokenInvalid)
        #expect(try verify(second, signatures) != nil)
        // The same name with other content is another key.
        signatures.update(
            keys: try SigningKeys(files: [.init(name: "k2", content: Array(repeating: 65, count: 40))]))
        #expect(refusal(second, signatures) == .tokenInvalid)
    }

    @Test("A code of one form is not valid in another form")
    func separation() throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let path = try #require(ContentPath("/o/m/a"))
        let key = try #require(keys.secret("k1"))
        let target = SignedText.Target.exact(path, query: nil)
        let token = try #require(
            SignedText.parse(pathToken: SignedText.pathToken(target, keyID: "k1", expiry: end.seconds, key)))
        let code = Base64URL.encode(token.code)
        #expect(refusal("/o/m/a?exp=\(end.seconds)&kid=k1&sig=\(code)", signatures) == .tokenInvalid)
        let query = SignedText.queryCode(target, keyID: "k1", expiry: end.seconds, key)
        #expect(refusal("/t/\(Base64URL.encode(token.body + query))/o/m/a", signatures) == .tokenInvalid)
        #expect(try verify("/t/\(Base64URL.encode(token.body + token.code))/o/m/a", signatures) != nil)
    }

    @Test(
        "Times in another spelling, and keys with odd names, are malformed",
        arguments: [
            "0x10", "+1800000600", "01800000600", "-1", "", "1800000600.0", "9999999999999", " 1800000600", "1e9",
        ])
    func spelling(_ expiry: String) throws {
        let signatures = ContentSignatures(keys: try keys("k1"))
        let code = Base64URL.encode(Array(repeating: UInt8(0), count: 32))
        #expect(refusal("/o/m/a?exp=\(expiry)&kid=k1&sig=\(code)", signatures) == .tokenInvalid)
        #expect(refusal("/o/m/a?exp=1&kid=../k1&sig=\(code)", signatures) == .tokenInvalid)
    }

    @Test("Forged codes are refused before the time is looked at, and messages contain no signature")
    func order() throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let code = Base64URL.encode(Array(repeating: UInt8(7), count: 32))
        let url = "/o/m/a?exp=1&kid=k1&sig=\(code)"
        let error = #expect(throws: AccessRefusal.self) { try verify(url, signatures) }
        #expect(error?.reason == .tokenInvalid)
        #expect(error.map { !$0.message.contains(code) } ?? false)
    }

    // MARK: Grace

    @Test(
        "A reader that began before the end continues with the same asset for the grace",
        arguments: [SignatureRequest.Form.query, .path])
    func grace(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys, rules: .init(grace: .seconds(60)))
        let url = try keys.sign(request("/o/media/show/a.mp4", .prefix, form)).target
        let other = url.replacing("a.mp4", with: "b.mp4")
        #expect(try verify(url, signatures, at: end - .seconds(1))?.isGrace == false)
        #expect(try verify(url, signatures, at: end)?.isGrace == true)
        #expect(try verify(url, signatures, at: end + .milliseconds(59_999))?.isGrace == true)
        #expect(refusal(url, signatures, at: end + .seconds(60)) == .tokenExpired)
        #expect(refusal(other, signatures, at: end) == .tokenExpired)
        // A use after the end does not begin a grace.
        #expect(refusal(other, signatures, at: end + .seconds(1)) == .tokenExpired)

        signatures.update(rules: .init(grace: .zero))
        #expect(refusal(url, signatures, at: end) == .tokenExpired)
        signatures.update(rules: .init(grace: .seconds(60)))
        signatures.update(keys: try self.keys("k2"))
        #expect(refusal(url, signatures, at: end) == .tokenInvalid)
    }

    @Test("The grace is that of one signature: a second signed URL has its own")
    func graceOfSignature() throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        let first = try keys.sign(request("/o/media/a", .exact, .query)).target
        let second = try keys.sign(
            SignatureRequest(path: "/o/media/a", scope: .exact, form: .query, expiresAt: end - .seconds(1))
        ).target
        #expect(try verify(first, signatures) != nil)
        #expect(try verify(first, signatures, at: end)?.isGrace == true)
        #expect(refusal(second, signatures, at: end) == .tokenExpired)
    }

    @Test("The table of the grace is bounded and drops the oldest")
    func graceBound() {
        var grace = SignatureGrace(duration: .seconds(60), capacity: 100)
        for number in 0...1000 { grace.began(TokenDigest(of: "\(number)"), until: end) }
        let first = grace.admits(TokenDigest(of: "0"), at: end)
        let last = grace.admits(TokenDigest(of: "1000"), at: end)
        let lastAfterGrace = grace.admits(TokenDigest(of: "1000"), at: end + .seconds(60))
        #expect(!first)
        #expect(last)
        #expect(!lastAfterGrace)
    }

    // MARK: Minting

    @Test(
        "Paths that are no content are not signed",
        arguments: [
            "", "/", "/o/", "/o/media", "/o//a", "o/media/a", "/v1/stats", "/o/media/../a", "/o/media/%2e/a",
            "/o/media/%",
            "/o/media/a#b", "/o/media/a?x=1#b", "/o/media/a?exp=1&kid=k&sig=s", "/o/media/a?URISigningPackage=x",
            "http://h/o/media/a",
        ])
    func unsignable(_ path: String) throws {
        for form in Self.forms {
            for scope in SignatureRequest.Scope.allCases {
                let error = #expect(throws: CacheError.self) { try keys("k1").sign(request(path, scope, form)) }
                #expect(error?.code == .invalidField("path"))
            }
        }
    }

    @Test("Paths that are too long for a form are refused instead of signed", arguments: forms)
    func longPaths(_ form: SignatureRequest.Form) throws {
        let keys = try keys("k1")
        let signatures = ContentSignatures(keys: keys)
        for length in [100, 1000, 1900, 3000, 6000] {
            for scope in SignatureRequest.Scope.allCases {
                let path = "/o/media/" + String(repeating: "a", count: length) + "/b"
                guard let url = try? keys.sign(request(path, scope, form)) else {
                    #expect(length > 900)
                    continue
                }
                #expect(try verify(url.target, signatures) != nil, "\(length) \(scope)")
            }
        }
    }

    @Test("An unknown key, no key at all, and a time out of range are refused")
    func badRequests() throws {
        for form in Self.forms {
            let unknown = #expect(throws: CacheError.self) {
                try keys("k1").sign(request("/o/m/a", .exact, form, kid: "k2"))
            }
            #expect(unknown?.code == .invalidField("kid"))
            let none = #expect(throws: CacheError.self) { try SigningKeys().sign(request("/o/m/a", .exact, form)) }
            #expect(none?.code == .invalidField("kid"))
            for time in [Timestamp(milliseconds: -1), Timestamp(milliseconds: .max)] {
                let error = #expect(throws: CacheError.self) {
                    try keys("k1").sign(SignatureRequest(path: "/o/m/a", scope: .exact, form: form, expiresAt: time))
                }
                #expect(error?.code == .invalidField("expiresAt"))
            }
        }
    }

    @Test("A description of a signed URL hides the signature")
    func description() throws {
        let url = try keys("k1").sign(request("/o/m/a", .exact, .query))
        #expect("\(url)" == "(signed URL of k1)")
        #expect(String(reflecting: url) == "(signed URL of k1)")
    }
}
