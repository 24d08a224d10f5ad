import CacheCore
import ReaderAccess
import TestChance
import Testing
import WebTokens

struct ReaderDirectoryTests {
    private static let now = Timestamp(seconds: 1_800_000_000)
    private let now = Self.now
    private let secret = Array("0123456789abcdef0123456789abcdef".utf8)

    private func file(_ text: String) throws -> TokensFile { try TokensFile.parse(text.utf8) }

    private func digest(_ token: String) -> String { TokenDigest(of: token).hexDigits }

    // MARK: Tokens

    @Test("The configured tokens have the ids admin and read")
    func configuredTokens() {
        let directory = ReaderDirectory()
        #expect(!directory.hasReaders)
        #expect(directory.reader(ofBearer: "a", at: now) == .unknown)
        directory.update(adminToken: "a", readToken: "r")
        #expect(directory.hasReaders)
        #expect(directory.reader(ofBearer: "a", at: now) == .reader(Reader(id: "admin", scope: .admin)))
        #expect(directory.reader(ofBearer: "r", at: now) == .reader(Reader(id: "read", scope: .read)))
        for token in ["", "A", "a ", " a", "ar", digest("a")] {
            #expect(directory.reader(ofBearer: token, at: now) == .unknown)
        }
        directory.update(adminToken: "same", readToken: "same")
        #expect(directory.reader(ofBearer: "same", at: now).reader?.scope == .admin)
        #expect(directory.reader(ofBearer: "a", at: now) == .revoked)
        directory.update(adminToken: nil, readToken: nil)
        #expect(!directory.hasReaders)
    }

    @Test("A replaced tokens file takes effect at once, and its tokens end at their time")
    func tokensFile() throws {
        let directory = ReaderDirectory()
        directory.update(adminToken: "a", readToken: nil)
        directory.update(
            file: try file(
                #"{"tokens":[{"id":"x","scope":"write","sha256":"\#(digest("t1"))","#
                    + #""expiresAt":"2027-01-15T08:00:01Z"}]}"#
            ))
        #expect(directory.reader(ofBearer: "t1", at: now).reader?.id == "x")
        let end = now + .seconds(1)
        #expect(directory.reader(ofBearer: "t1", at: end - .milliseconds(1)).reader != nil)
        #expect(directory.reader(ofBearer: "t1", at: end) == .expired(id: "x"))

        directory.update(file: try file(#"{"tokens":[{"id":"y","scope":"read","sha256":"\#(digest("t2"))"}]}"#))
        #expect(directory.reader(ofBearer: "t1", at: now) == .revoked)
        #expect(directory.reader(ofBearer: "t2", at: now).reader?.id == "y")
        #expect(directory.reader(ofBearer: "a", at: now).reader?.id == "admin")
        directory.update(file: nil)
        #expect(directory.reader(ofBearer: "t2", at: now) == .revoked)
    }

    private func token(_ id: String, _ secret: String, _ scope: String = "read") throws -> APIToken {
        let entry = try #require(
            try file(#"{"tokens":[{"id":"\#(id)","scope":"\#(scope)","sha256":"\#(digest(secret))"}]}"#).entries.first)
        return APIToken(entry: entry, createdAt: now, createdBy: "admin")
    }

    @Test("Tokens of the API have effect beside those of the file, which win")
    func tokensOfTheAPI() throws {
        let directory = ReaderDirectory()
        directory.update(api: [try token("a", "t1", "write")], version: 1)
        #expect(directory.hasReaders && directory.reader(ofBearer: "t1", at: now).reader?.scope == .write)
        #expect(directory.reader(named: "a", at: now)?.scope == .write)

        // An update that comes late has no effect.
        directory.update(api: [try token("a", "t1"), try token("b", "t2"), try token("c", "t3")], version: 3)
        directory.update(api: [], version: 2)
        #expect(directory.reader(ofBearer: "t2", at: now).reader?.id == "b")

        // An entry of the file overrides one of its name, and one of its digest.
        directory.update(
            file: try file(
                #"{"tokens":[{"id":"b","scope":"read","sha256":"\#(digest("f1"))"},"#
                    + #"{"id":"x","scope":"read","sha256":"\#(digest("t3"))"}]}"#))
        #expect(directory.reader(ofBearer: "t2", at: now) == .revoked)
        #expect(directory.reader(ofBearer: "t3", at: now).reader?.id == "x")
        let listed = directory.tokens.map { "\($0.reader.id) \($0.source) \($0.isOverridden)" }
        #expect(listed == ["a api false", "b file false", "b api true", "c api true", "x file false"])
        directory.update(adminToken: "boss", readToken: nil)
        directory.update(api: [try token("admin", "t4")], version: 4)
        #expect(directory.reader(ofBearer: "t4", at: now) == .unknown)
        #expect(directory.reader(ofBearer: "boss", at: now).reader?.scope == .admin)

        directory.update(file: nil)
        directory.update(api: [], version: 5)
        #expect(directory.hadAPITokens && !ReaderDirectory().hadAPITokens)
        #expect(directory.reader(ofBearer: "t1", at: now) == .revoked)
    }

    @Test("The stored form of a token of the API has its digest, and is read again")
    func storedTokensOfTheAPI() throws {
        let made = try token("a", "t1", "sign")
        #expect(try APIToken(document: made.document) == made)
        #expect(made.document.contains(digest("t1")) && !made.document.contains("t1\""))
        for text in ["", "{}", #"{"token":{"id":"a"},"createdAt":"2026-01-01T00:00:00Z"}"#] {
            #expect(throws: CacheError.self) { try APIToken(document: text) }
        }
    }

    @Test("A removed token is known for 90 days, also to the next process")
    func removedTokens() throws {
        let first = ReaderDirectory()
        first.update(adminToken: "a", readToken: "r")
        let record = try #require(first.recordTokens(at: now))
        #expect(first.recordTokens(at: now) == nil)

        let second = ReaderDirectory()
        second.update(adminToken: "b", readToken: "r")
        second.recall(IssuedTokens(text: record.text))
        #expect(second.reader(ofBearer: "a", at: now) == .revoked)
        #expect(second.reader(ofBearer: "r", at: now).reader?.id == "read")
        #expect(second.reader(ofBearer: "c", at: now) == .unknown)
        let third = ReaderDirectory()
        third.recall(IssuedTokens(text: try #require(second.recordTokens(at: now)).text))
        let end = now + .seconds(90 * 86_400)
        #expect(third.reader(ofBearer: "a", at: end - .milliseconds(1)) == .revoked)
        #expect(third.reader(ofBearer: "a", at: end) == .unknown)
        // The time of the others begins with the first record without them.
        _ = third.recordTokens(at: end)
        #expect(third.reader(ofBearer: "b", at: end + .seconds(89 * 86_400)) == .revoked)
    }

    @Test("A certificate is found by any of its names; DNS names ignore case, others do not")
    func certificates() throws {
        let directory = ReaderDirectory()
        directory.update(
            file: try file(
                #"""
                {"tokens":[{"id":"x","scope":"read","subjects":["CN=cam","DNS:Cam.Example"]},
                {"id":"y","scope":"write","subjects":["URI:spiffe://a/b"],"expiresAt":"2020-01-01T00:00:00Z"}]}
                """#))
        #expect(directory.hasReaders)
        #expect(directory.reader(ofCertificateNames: ["CN=other", "CN=cam"], at: now).reader?.id == "x")
        #expect(directory.reader(ofCertificateNames: ["DNS:cam.EXAMPLE"], at: now).reader?.id == "x")
        #expect(directory.reader(ofCertificateNames: ["URI:spiffe://a/b"], at: now) == .expired(id: "y"))
        for names in [[], ["CN=CAM"], ["cam"], ["DNS:cam"], ["URI:spiffe://A/b"], ["EMAIL:cam"], ["CN=cam "]] {
            #expect(directory.reader(ofCertificateNames: names, at: now) == .unknown)
        }
        #expect(directory.reader(ofBearer: "CN=cam", at: now) == .unknown)
    }

    // MARK: JSON Web Tokens

    /// A directory with JWT rules and an HMAC key `k1`.
    private func jwtDirectory(_ rules: JWTRules? = nil) throws -> ReaderDirectory {
        let directory = ReaderDirectory()
        directory.update(
            rules: rules ?? JWTRules(issuer: "https://id.example", audience: "larder", algorithms: [.hs256]))
        directory.update(keys: JSONWebKeySet([try VerificationKey(secret: secret, id: "k1")]))
        return directory
    }

    /// A token with valid claims, changed by `changes`; null removes a claim.
    private func jwt(_ changes: JSON = [:], kid: String? = "k1", secret: [UInt8]? = nil) throws -> String {
        let claims: JSON = [
            "iss": "https://id.example", "aud": "larder", "sub": "anna", "scope": "openid read",
            "exp": .integer(now.seconds + 600),
        ]
        let key = try SigningKey(secret: secret ?? self.secret, algorithm: .hs256)
        return try JSONWebToken.sign(
            claims.merged(with: changes), header: kid.map { [JSON.Member("kid", .string($0))] } ?? [], with: key)
    }

    @Test("A valid JWT is a reader with its subject, scope, limits and end")
    func validJWT() throws {
        let directory = try jwtDirectory()
        let lookup = directory.reader(
            ofBearer: try jwt([
                "scope": ["x", "larder:write", "read"], "larder_origins": ["media"], "larder_prefixes": ["/o/media/"],
                "larder_max_bytes_per_second": 77, "larder_shared_cache": .bool(true),
            ]), at: now)
        #expect(
            lookup
                == .reader(
                    Reader(
                        id: "jwt:anna", scope: .write, origins: ["media"], prefixes: ["/o/media/"],
                        expiresAt: now + .seconds(660), maxBytesPerSecond: 77, isSharedCache: true)))
    }

    @Test(
        "The highest scope wins, with or without the prefix larder:",
        arguments: [
            ("read", AccessScope.read), ("read write", .write), ("larder:admin read", .admin),
            ("openid larder:read", .read), ("sign", .sign), ("larder:sign read", .read), ("sign admin", .admin),
        ])
    func scopes(_ text: String, _ scope: AccessScope) throws {
        #expect(try jwtDirectory().reader(ofBearer: try jwt(["scope": .string(text)]), at: now).reader?.scope == scope)
    }

    @Test("A JWT without any of the scopes is distinguished from an invalid one")
    func withoutScope() throws {
        let directory = try jwtDirectory()
        for scope in [.null, "", "openid", "READ", "reader", "larder:", "larder:larder:read", "other:admin", []]
            as [JSON]
        {
            #expect(directory.reader(ofBearer: try jwt(["scope": scope]), at: now) == .withoutScope(id: "jwt:anna"))
        }
    }

    @Test("Another scope claim is read if it is configured")
    func scopeClaim() throws {
        let directory = try jwtDirectory(
            JWTRules(issuer: nil, audience: nil, algorithms: [.hs256], scopeClaim: "roles"))
        #expect(directory.reader(ofBearer: try jwt(["roles": ["admin"]]), at: now).reader?.scope == .admin)
        #expect(directory.reader(ofBearer: try jwt(), at: now) == .withoutScope(id: "jwt:anna"))
    }

    @Test("Claims of a wrong type are refused instead of ignored")
    func wrongTypes() throws {
        let directory = try jwtDirectory()
        let changes: [JSON] = [
            ["sub": 7], ["azp": ["x"]], ["larder_max_signature_seconds": 0], ["scope": 7], ["scope": [7]],
            ["larder_origins": "media"],
            ["larder_origins": [1]], ["larder_prefixes": "/o/"], ["larder_prefixes": ["o"]],
            ["larder_prefixes": ["/o/../"]], ["larder_max_bytes_per_second": 0], ["larder_max_bytes_per_second": "1"],
            ["larder_max_bytes_per_second": .number(1.5)], ["larder_shared_cache": "true"],
        ]
        for change in changes {
            #expect(
                directory.reader(ofBearer: try jwt(change), at: now) == .invalid(.malformed), "\(change.text)")
        }
    }

    @Test("Issuer, audience, time, algorithm, signature and key are checked")
    func refusals() throws {
        let directory = try jwtDirectory()
        let other = Array(repeating: UInt8(1), count: 32)
        let doubled = #"{"iss":"https://id.example","aud":"larder","aud":"larder"}"#
        let duplicate = "e30." + Base64URL.encode(doubled.utf8) + "."
        let cases: [(String, TokenLookup)] = [
            (try jwt(["iss": "x"]), .foreign(.wrongIssuer)), (try jwt(["aud": "x"]), .foreign(.wrongAudience)),
            (try jwt(["iss": "x"], secret: other), .foreign(.wrongIssuer)),
            (try jwt(["exp": .integer(now.seconds - 60)]), .expired(id: nil)),
            (try jwt(["exp": .null]), .expired(id: nil)),
            (try jwt(["nbf": .integer(now.seconds + 61)]), .invalid(.notYetValid)),
            (try jwt(secret: other), .invalid(.badSignature)), (try jwt(kid: "k2"), .invalid(.unknownKey)),
            (try jwt() + ".x", .invalid(.malformed)), (try jwt().replacing(".", with: "=."), .invalid(.malformed)),
            (try jwt().replacing(".", with: ". "), .invalid(.malformed)),
            (
                try jwt(["x": .string(String(repeating: "x", count: 9000))]) + String(repeating: "A", count: 9000),
                .invalid(.tooLarge)
            ),
            (duplicate, .invalid(.malformed)), ("e30." + Base64URL.encode("[1]".utf8) + ".", .foreign(.malformed)),
            ("a.b.c", .foreign(.malformed)), ("a.b", .foreign(.malformed)), ("..", .foreign(.malformed)),
        ]
        for (token, lookup) in cases {
            #expect(directory.reader(ofBearer: token, at: now) == lookup)
            if case .foreign = lookup { #expect(!lookup.isOwn) } else { #expect(lookup.isOwn) }
        }

        let strict = try jwtDirectory(JWTRules(issuer: nil, audience: nil))
        #expect(strict.reader(ofBearer: try jwt(), at: now) == .foreign(.algorithmNotAllowed))
        directory.update(rules: nil)
        #expect(directory.reader(ofBearer: try jwt(), at: now) == .unknown)
    }

    @Test("Without an issuer and an audience, only a valid signature makes a token one of this service")
    func withoutAddress() throws {
        let directory = try jwtDirectory(JWTRules(issuer: nil, audience: nil, algorithms: [.hs256]))
        #expect(directory.reader(ofBearer: try jwt(), at: now).reader != nil)
        let ended = directory.reader(ofBearer: try jwt(["exp": 1]), at: now)
        #expect(ended == .expired(id: nil) && ended.isOwn)
        let forged = directory.reader(ofBearer: try jwt(secret: Array(repeating: 1, count: 32)), at: now)
        #expect(forged == .foreign(.badSignature))
    }

    @Test("A JWT without sub is named by its client or issuer")
    func names() throws {
        let directory = try jwtDirectory()
        for (changes, id) in [
            (["sub": .null, "client_id": "c", "azp": "a"], "jwt:c"), (["sub": "", "azp": "a"], "jwt:a"),
            (["sub": .null], "jwt:https://id.example"),
        ] as [(JSON, String)] {
            #expect(directory.reader(ofBearer: try jwt(changes), at: now).reader?.id == id)
        }
    }

    @Test("A JWT can sign beside reading, for a limited time")
    func signing() throws {
        let token = try jwt(["scope": "read larder:sign", "larder_max_signature_seconds": 60])
        let reader = try #require(try jwtDirectory().reader(ofBearer: token, at: now).reader)
        #expect(reader.permits(.read) && reader.permits(.sign) && !reader.permits(.write))
        #expect(reader.maxSignatureSeconds == 60)
    }

    @Test("The subject becomes an id of at most 64 printable characters")
    func subject() throws {
        let directory = try jwtDirectory()
        let long = directory.reader(ofBearer: try jwt(["sub": .string(String(repeating: "x", count: 200))]), at: now)
        #expect(long.reader?.id == "jwt:" + String(repeating: "x", count: 64))
        let odd = directory.reader(ofBearer: try jwt(["sub": "a b\n\u{1B}é"]), at: now)
        #expect(odd.reader?.id == "jwt:a_b____")
    }

    @Test("A verified JWT is remembered, but ends in time")
    func cacheEnd() throws {
        let directory = try jwtDirectory()
        let token = try jwt()
        for _ in 0..<3 { #expect(directory.reader(ofBearer: token, at: now).reader != nil) }
        #expect(directory.reader(ofBearer: token, at: now + .seconds(659)).reader != nil)
        #expect(directory.reader(ofBearer: token, at: now + .seconds(660)) == .expired(id: nil))
    }

    @Test("A removed key and changed rules end remembered tokens at once")
    func cacheDrop() throws {
        let directory = try jwtDirectory()
        let token = try jwt()
        #expect(directory.reader(ofBearer: token, at: now).reader != nil)
        directory.update(keys: JSONWebKeySet([try VerificationKey(secret: Array(repeating: 5, count: 32), id: "k1")]))
        #expect(directory.reader(ofBearer: token, at: now) == .invalid(.badSignature))

        directory.update(keys: JSONWebKeySet([try VerificationKey(secret: secret, id: "k1")]))
        #expect(directory.reader(ofBearer: token, at: now).reader != nil)
        directory.update(rules: JWTRules(issuer: "other", audience: nil, algorithms: [.hs256]))
        #expect(directory.reader(ofBearer: token, at: now) == .foreign(.wrongIssuer))
    }

    @Test("An unknown kid requests keys at most once a minute, other refusals do not")
    func keyRequests() throws {
        let directory = try jwtDirectory()
        #expect(!directory.needsKeys)
        _ = directory.reader(ofBearer: try jwt(secret: Array(repeating: 1, count: 32)), at: now)
        _ = directory.reader(ofBearer: try jwt(["iss": "x"]), at: now)
        _ = directory.reader(ofBearer: "a.b.c", at: now)
        #expect(!directory.takeKeyRequest(at: .seconds(0)))

        let rotated = try jwt(kid: "k2")
        #expect(directory.reader(ofBearer: rotated, at: now) == .invalid(.unknownKey))
        #expect(directory.needsKeys)
        #expect(directory.takeKeyRequest(at: .seconds(10)))
        #expect(!directory.takeKeyRequest(at: .seconds(10)))
        _ = directory.reader(ofBearer: rotated, at: now)
        #expect(!directory.takeKeyRequest(at: .milliseconds(69_999)))
        #expect(directory.takeKeyRequest(at: .seconds(70)))

        // The failed retrieval leaves the old keys in force; the successful one makes the new token valid.
        #expect(directory.reader(ofBearer: try jwt(), at: now).reader != nil)
        directory.update(keys: JSONWebKeySet([try VerificationKey(secret: secret, id: "k2")]))
        #expect(directory.reader(ofBearer: rotated, at: now).reader != nil)
        #expect(directory.reader(ofBearer: try jwt(), at: now) == .invalid(.unknownKey))
    }

    @Test("Rules without keys request keys; a token without kid requests them if no key fits")
    func firstKeys() throws {
        let directory = ReaderDirectory()
        #expect(!directory.takeKeyRequest(at: .zero))
        directory.update(rules: JWTRules(issuer: nil, audience: nil, algorithms: [.hs256]))
        #expect(directory.takeKeyRequest(at: .zero))
        directory.update(keys: JSONWebKeySet([try VerificationKey(secret: Array(repeating: 1, count: 32))]))
        #expect(directory.reader(ofBearer: try jwt(kid: nil), at: now) == .foreign(.badSignature))
        #expect(directory.needsKeys)
    }

    @Test("A token of the file that looks like a JWT is found in the file")
    func fileFirst() throws {
        let directory = try jwtDirectory()
        directory.update(file: try file(#"{"tokens":[{"id":"x","scope":"read","sha256":"\#(digest("a.b.c"))"}]}"#))
        #expect(directory.reader(ofBearer: "a.b.c", at: now).reader?.id == "x")
    }

    @Test("No single changed character of a JWT is accepted, and random changes never trap")
    func mutations() throws {
        let (_, seed) = SeededRandom.announced()
        let directory = try jwtDirectory()
        let token = try jwt()
        #expect(directory.reader(ofBearer: token, at: now).reader != nil)
        for index in token.utf8.indices {
            var changed = token
            changed.replaceSubrange(index...index, with: token[index] == "A" ? "B" : "A")
            #expect(directory.reader(ofBearer: changed, at: now).reader == nil)
        }
        for number in 0..<3000 as Range<UInt64> {
            let bytes = Mutation.input(number, seed: seed, from: [Array(token.utf8)])
            guard bytes != Array(token.utf8) else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(directory.reader(ofBearer: text, at: now).reader == nil, "seed \(seed), input \(number)")
        }
    }

    @Test("Messages of refusals contain no part of the token")
    func messages() throws {
        let directory = try jwtDirectory()
        for token in [try jwt(["iss": "x"]), try jwt(kid: "k2"), "secret-token"] {
            let message = try #require(directory.reader(ofBearer: token, at: now).message)
            for part in token.split(separator: ".") { #expect(!message.contains(part)) }
        }
        #expect(TokenLookup.reader(Reader(id: "a", scope: .read)).message == nil)
    }
}
