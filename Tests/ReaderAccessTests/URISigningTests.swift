import CacheCore
import Cryptography
import TestKeys
import Testing
import WebTokens

@testable import ReaderAccess

/// RFC 9246.
struct URISigningTests {
    private let now = Timestamp(seconds: 1_800_000_000)
    private let secret = Array(String(repeating: "k", count: 32).utf8)
    private let pair = TestKey.ec("P-256")

    private func signatures(_ rules: ContentSignatures.Rules = .init(grace: .zero)) throws -> ContentSignatures {
        ContentSignatures(
            keys: try SigningKeys(
                files: [
                    .init(name: "h1.key", content: secret),
                    .init(name: "e1.pem", content: Array(pair.pkcs8.utf8)),
                ]), rules: rules)
    }

    /// A token with a container for everything below `/o/media/`, changed by `changes`.
    private func token(_ changes: JSON = [:], kid: String? = "h1", es256: Bool = false) throws -> String {
        let claims: JSON = [
            "exp": .integer(now.seconds + 60), "cdniuc": #"regex:https?://[^/]*/o/media/.*"#,
        ]
        let key =
            es256
            ? try SigningKey(pem: pair.pkcs8, algorithm: .es256)
            : try SigningKey(secret: secret, algorithm: .hs256)
        return try JSONWebToken.sign(
            claims.merged(with: changes), header: kid.map { [JSON.Member("kid", .string($0))] } ?? [], with: key)
    }

    private func verify(
        _ token: String, _ signatures: ContentSignatures, path: String = "/o/media/a.mp4", query: String? = nil,
        base: String = "https://cdn.example", at time: Timestamp? = nil
    ) throws(AccessRefusal) -> SignatureGrant {
        try signatures.verify(
            PresentedSignature(cookie: token), path: path, remainingQuery: query, base: base, at: time ?? now)
    }

    private func reason(_ changes: JSON, _ rules: ContentSignatures.Rules = .init(grace: .zero)) throws
        -> AccessRefusal.Reason?
    {
        do {
            _ = try verify(try token(changes), try signatures(rules))
            return nil
        } catch let refusal as AccessRefusal {
            return refusal.reason
        }
    }

    @Test("Tokens with HS256 and ES256 are accepted, with and without kid")
    func algorithms() throws {
        let signatures = try signatures()
        #expect(try verify(try token(), signatures).keyID == "h1")
        #expect(try verify(try token(kid: "e1", es256: true), signatures).keyID == "e1")
        #expect(try verify(try token(kid: nil), signatures).scope == .container)
        #expect(try verify(try token(kid: nil, es256: true), signatures).expiresAt == now + .seconds(60))
    }

    @Test("Another key, the key of the other algorithm, and other algorithms are refused")
    func forgeries() throws {
        let signatures = try signatures()
        let hs512 = try SigningKey(secret: secret + secret, algorithm: .hs512)
        let publicPEM = Array(pair.publicPEM.utf8)
        let claims: JSON = ["cdniuc": "regex:.*"]
        let forged = [
            try token(kid: "e1"), try token(kid: "h1", es256: true), try token(kid: "x"),
            try JSONWebToken.sign(claims, with: hs512),
            try JSONWebToken.sign(
                claims, header: [JSON.Member("kid", "e1")], with: try SigningKey(secret: publicPEM, algorithm: .hs256)),
            try JSONWebToken.sign(
                claims, with: try SigningKey(pem: TestKey.ec("P-256").pkcs8, algorithm: .es256)),
            Base64URL.encode(#"{"alg":"none"}"#.utf8) + "." + Base64URL.encode(claims.text.utf8) + ".", "", "a.b.c",
            String(repeating: "a", count: 20_000),
        ]
        for token in forged {
            let error = #expect(throws: AccessRefusal.self) { try verify(token, signatures) }
            #expect(error?.reason == .tokenInvalid)
        }
    }

    @Test("Times count without leeway or grace (RFC 9246 §2.1.4, §2.1.5); a token without exp has no end")
    func times() throws {
        let signatures = try signatures(.init(grace: .seconds(600)))
        let limited = try token(["nbf": .integer(now.seconds + 10)])
        let early = #expect(throws: AccessRefusal.self) {
            try verify(limited, signatures, at: now + .milliseconds(9999))
        }
        #expect(early?.reason == .tokenInvalid)
        #expect(try verify(limited, signatures, at: now + .seconds(10)).isGrace == false)
        let late = #expect(throws: AccessRefusal.self) { try verify(limited, signatures, at: now + .seconds(60)) }
        #expect(late?.reason == .tokenExpired)
        #expect(try verify(try token(["exp": .null]), signatures, at: now + .seconds(1 << 30)).expiresAt == nil)
    }

    @Test(
        "Claims that are not supported, or have wrong values, are refused",
        arguments: [
            ["cdniip": "eyJ"], ["cdnicrit": "exp"], ["cdnicrit": ""], ["cdniv": 2], ["cdniv": "1"], ["cdniuc": .null],
            ["cdniuc": 7], ["cdniuc": "x"], ["cdniuc": "regex:"], ["cdniuc": "regex:("], ["cdniuc": "uri-regex:.*"],
            ["cdniuc": "hash:sha-512;AAAA"], ["cdniuc": "hash:sha-256;AAAA"], ["aud": "larder"], ["exp": "1"],
            ["cdnistt": 1], ["cdnistt": 2, "cdniets": 30], ["cdnistt": 1, "cdniets": 0], ["cdnistt": 1, "cdniets": -5],
            ["cdnistt": "1", "cdniets": 30], ["cdnistt": 1, "cdniets": .number(1e300)], ["cdniets": "30"],
            ["cdnistt": 1, "cdniets": 30, "cdnistd": -1], ["cdnistt": 1, "cdniets": 30, "cdnistd": "1"],
            ["cdnistt": 1, "cdniets": 30, "cdnistd": .number(0.5)], ["cdnistd": -1], ["jti": "once"], ["jti": 1],
        ] as [JSON])
    func unsupported(_ changes: JSON) throws {
        #expect(try reason(changes) == .tokenInvalid)
    }

    @Test(
        "cdniets without a transport, and the transport 0, ask for no renewal (RFC 9246 §2.1.12, §2.1.13)",
        arguments: [
            ["cdniets": 30], ["cdnistt": 0], ["cdnistt": 0, "cdniets": 30, "cdnistd": 2], ["cdnistd": 1],
            ["cdniets": .number(0.5)],
        ] as [JSON])
    func withoutTransport(_ changes: JSON) throws {
        #expect(try verify(try token(changes), try signatures()).renewal == nil)
    }

    @Test("iss must be a listed one, also without a list (RFC 9246 §2.1.1); aud must contain the audience")
    func issuers() throws {
        #expect(try reason(["iss": "a"]) == .tokenInvalid)
        #expect(try reason(["iss": "a"], .init(issuers: ["a", "b"])) == nil)
        #expect(try reason(["iss": "c"], .init(issuers: ["a", "b"])) == .tokenInvalid)
        #expect(try reason(["iss": ["a"]], .init(issuers: ["a", "b"])) == .tokenInvalid)
        #expect(try reason(["iss": .null], .init(issuers: ["a", "b"])) == nil)
        #expect(try reason([:], .init(issuers: ["a", "b"])) == nil)
        #expect(try reason(["aud": ["x", "larder"]], .init(audience: "larder")) == nil)
        #expect(try reason(["aud": "x"], .init(audience: "larder")) == .tokenInvalid)
        #expect(try reason([:], .init(audience: "larder")) == nil)
        #expect(try reason(["sub": "x", "iat": 1, "cdniv": .number(1)]) == nil)
    }

    @Test("A token with a JWT ID is refused with a reason (RFC 9246 §2.1.7)")
    func singleUse() throws {
        let error = #expect(throws: AccessRefusal.self) { try verify(try token(["jti": "x"]), try signatures()) }
        #expect(error?.message.contains("jti") == true)
    }

    @Test("The example expression of RFC 9246 §2.1.15 covers its segments only")
    func regex() throws {
        let signatures = try signatures()
        let token = try token([
            "cdniuc": #"regex:[^:]*\://[^/]*/o/media/folder/content/quality_[^/]*/segment.{3}\.mp4(\?.*)?"#
        ])
        for (path, query) in [
            ("/o/media/folder/content/quality_1080/segment001.mp4", nil),
            ("/o/media/folder/content/quality_/segmentabc.mp4", "x=1"),
        ] as [(String, String?)] {
            #expect(try verify(token, signatures, path: path, query: query).scope == .container)
        }
        for path in [
            "/o/media/folder/content/quality_1/segment01.mp4", "/o/media/folder/content/quality_1/x/segment001.mp4",
            "/o/media/folder/content/quality_1/segment001.mp4x", "/o/media/x/folder/content/quality_1/segment001.mp4",
            "/o/media/folder/content/quality_1%2Fx/segment001.mp4",
            "/o/media/folder/content/quality_..%2f/segment001.mp4",
            "/o/media/folder/content/quality_1/../segment001.mp4",
        ] {
            let error = #expect(throws: AccessRefusal.self) { try verify(token, signatures, path: path) }
            #expect(error?.reason == .tokenScope, "\(path)")
        }
    }

    @Test("Encoded slashes are covered by their own escapes only (RFC 9246 §2.1.15)")
    func hiddenSlashes() throws {
        let signatures = try signatures()
        let token = try token(["cdniuc": #"regex:[^:]*://[^/]*/o/media/[^/]*/a%2Fb(%5C|c)\.mp4"#])
        for path in ["/o/media/x/a%2Fb%5C.mp4", "/o/media/x/a%2fb\\.mp4", "/o/media/x/a%2Fbc.mp4"] {
            #expect(try verify(token, signatures, path: path).scope == .container, "\(path)")
        }
        for path in ["/o/media/x%2Fy/a%2Fb%5C.mp4", "/o/media/x/a/b%5C.mp4", "/o/media/x%5Cy/a%2Fbc.mp4"] {
            #expect(throws: AccessRefusal.self, "\(path)") { try verify(token, signatures, path: path) }
        }
    }

    @Test("Signed URLs are URLs (RFC 3986 §3.3), and cover their content, for each byte in a segment")
    func allBytes() throws {
        let (signatures, pathBytes) = (try signatures(), Set("-._~!$&'()*+,;=:@/%?".utf8))
        for byte in UInt8(1)...255 {
            let digits = (byte < 16 ? "0" : "") + String(byte, radix: 16)
            var spellings = ["%" + digits, "%" + digits.uppercased()]
            if byte < 0x80, !"/?#%".utf8.contains(byte) { spellings.append(String(UnicodeScalar(byte))) }
            for spelling in spellings {
                let path = "/o/media/x\(spelling)y/a\(spelling)b.mp4"
                for scope in [SignatureRequest.Scope.exact, .prefix] {
                    for form in [SignatureRequest.Form.query, .path, .uriSigning] {
                        let url = try signatures.keys.sign(
                            SignatureRequest(
                                path: path, scope: scope, form: form, expiresAt: now + .seconds(60), keyID: "h1"))
                        let (clean, presented) = PresentedSignature.strip(target: url.target)
                        let isURL = url.target.utf8.allSatisfy {
                            FieldText.isLetter($0) || FieldText.isDigit($0) || pathBytes.contains($0)
                        }
                        #expect(isURL, "\(byte): \(url.target)")
                        let grant = try signatures.verify(
                            try #require(presented), path: clean, remainingQuery: nil, at: now)
                        #expect(grant.keyID == "h1", "\(byte) \(form) \(scope)")
                    }
                }
            }
        }
    }

    @Test("A base that could make up a path is refused, its case is not significant")
    func base() throws {
        let signatures = try signatures()
        let token = try token(["cdniuc": #"regex:https://cdn\.example(:[0-9]+)?/o/media/.*"#])
        for base in ["https://cdn.example", "HTTPS://CDN.example:8443"] {
            #expect(try verify(token, signatures, base: base).scope == .container)
        }
        for base in [
            "https://cdn.example/o/media/", "https://x", "http://cdn.example", "", "https://", "cdn.example",
            "https://cdn.example?", "https://cdn.example#", "https://a@cdn.example", "https:cdn.example",
        ] {
            #expect(throws: AccessRefusal.self, "\(base)") {
                try verify(token, signatures, path: "/o/secret/a", base: base)
            }
        }
    }

    @Test(
        "The default port of the scheme is the same as none (RFC 3986 §6.2.3)",
        arguments: [
            ("https://cdn.example", "https://cdn.example:443", true),
            ("https://cdn.example:443", "https://cdn.example", true), ("http://[::1]", "http://[::1]:80", true),
            ("http://cdn.example:80", "http://CDN.example:", true), ("http://[::1]:80", "http://[::1]", true),
            ("https://cdn.example:8443", "https://cdn.example", false),
            ("https://cdn.example", "https://cdn.example:80", false),
            ("http://cdn.example", "http://cdn.example:8080", false),
        ])
    func defaultPorts(_ signed: String, _ requested: String, _ isCovered: Bool) throws {
        let uri = signed + "/o/media/a.mp4"
        let digest = Base64URL.encode(HashFunction.sha256.digest(of: uri.utf8))
        for container in ["regex:" + ExtendedRegex.escaped(uri), "hash:sha-256;" + digest] {
            let token = try token(["cdniuc": .string(container)])
            let grant = try? verify(token, try signatures(), base: requested)
            #expect((grant != nil) == isCovered, "\(container)")
        }
    }

    @Test("A hash container covers one URI")
    func hash() throws {
        let signatures = try signatures()
        let uri = "https://cdn.example/o/media/a.mp4?x=1"
        let digest = Base64URL.encode(HashFunction.sha256.digest(of: uri.utf8))
        let token = try token(["cdniuc": .string("hash:sha-256;" + digest)])
        #expect(try verify(token, signatures, query: "x=1").scope == .container)
        #expect(try verify(token, signatures, path: "/o/media/%61.mp4", query: "x=1").scope == .container)
        for (path, query) in [("/o/media/a.mp4", nil), ("/o/media/a.mp4", "x=2"), ("/o/media/b.mp4", "x=1")]
            as [(String, String?)]
        {
            let error = #expect(throws: AccessRefusal.self) {
                try verify(token, signatures, path: path, query: query)
            }
            #expect(error?.reason == .tokenScope)
        }
    }

    @Test("A renewable token is renewed for a cookie of the given depth, and the renewed one again")
    func renewal() throws {
        let signatures = try signatures(.init(issuers: ["a"]))
        let first = try token(["cdnistt": 1, "cdniets": 30, "cdnistd": 2, "iss": "a"], kid: "e1", es256: true)

        let renewal = try #require(try verify(first, signatures, path: "/o/media/show/a.mp4").renewal)

        #expect(renewal.path == "/o/media/")
        #expect(renewal.expiresAt == now + .seconds(30))
        #expect("\(renewal)" == "(renewal)")
        let later = now + .seconds(20)
        let second = try verify(renewal.token, signatures, path: "/o/media/show/b.mp4", at: later)
        #expect(second.expiresAt == now + .seconds(30))
        #expect(second.keyID == "e1")
        #expect(second.renewal?.expiresAt == later + .seconds(30))
        #expect(throws: AccessRefusal.self) {
            try verify(renewal.token, signatures, path: "/o/other/b.mp4", at: later)
        }
        #expect(throws: AccessRefusal.self) { try verify(renewal.token, signatures, at: now + .seconds(30)) }
        #expect(try verify(try token(), signatures).renewal == nil)
    }

    @Test("A fraction of cdniets counts")
    func fractionalRenewal() throws {
        let signatures = try signatures()
        let renewal = try #require(
            try verify(try token(["cdnistt": 1, "cdniets": .number(1.5)]), signatures).renewal)
        #expect(renewal.expiresAt == now + .milliseconds(1500))
        #expect(try verify(renewal.token, signatures, at: now + .milliseconds(1499)).expiresAt == renewal.expiresAt)
        let late = #expect(throws: AccessRefusal.self) {
            try verify(renewal.token, signatures, at: now + .milliseconds(1500))
        }
        #expect(late?.reason == .tokenExpired)
    }

    @Test("The path of the cookie has as many segments as the depth; fewer are not renewed (RFC 9246 §2.1.14)")
    func cookiePath() throws {
        #expect(URISigningClaims.cookiePath("/o/media/a/b.mp4", depth: 0) == "/")
        #expect(URISigningClaims.cookiePath("/o/media/a/b.mp4", depth: 1) == "/o/")
        #expect(URISigningClaims.cookiePath("/o/media/a/b.mp4", depth: 3) == "/o/media/a/")
        #expect(URISigningClaims.cookiePath("/o/media/a/b.mp4", depth: 4) == "/o/media/a/b.mp4")
        #expect(URISigningClaims.cookiePath("/o/media/a/b.mp4", depth: 5) == nil)
        #expect(URISigningClaims.cookiePath("/o/media/", depth: 2) == "/o/media/")
        #expect(URISigningClaims.cookiePath("/o/media/", depth: 3) == nil)
        let deep = try token(["cdnistt": 1, "cdniets": 30, "cdnistd": 4])
        #expect(try verify(deep, try signatures()).renewal == nil)
    }

    @Test("A token that only a public key verifies is renewed with another key, or refused without one")
    func renewalWithoutPrivateKey() throws {
        let publicFile = SigningKeys.File(name: "e1.pem", content: Array(pair.publicPEM.utf8))
        let renewable = try token(["cdnistt": 1, "cdniets": 30], kid: "e1", es256: true)
        let alone = ContentSignatures(keys: try SigningKeys(files: [publicFile]))
        #expect(throws: AccessRefusal.self) { try verify(renewable, alone) }
        let both = ContentSignatures(keys: try SigningKeys(files: [publicFile, .init(name: "h1", content: secret)]))
        let renewal = try #require(try verify(renewable, both).renewal)
        #expect(try verify(renewal.token, both).keyID == "h1")
    }
}
