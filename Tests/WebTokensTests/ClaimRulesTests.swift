import CacheCore
import Testing
import WebTokens

struct ClaimRulesTests {
    private func check(_ claims: JSON, _ rules: ClaimRules = ClaimRules(), at seconds: Int64) throws {
        try rules.check(claims, at: Timestamp(seconds: seconds))
    }

    @Test("exp ends a token after the leeway, to the millisecond")
    func expiry() throws {
        try check(["exp": 1000], at: 1059)
        #expect(throws: TokenRefusal.expired) { try check(["exp": 1000], at: 1060) }
        try ClaimRules().check(["exp": 1000], at: Timestamp(milliseconds: 1_059_999))
        let strict = ClaimRules(leeway: .zero)
        try check(["exp": 1000], strict, at: 999)
        #expect(throws: TokenRefusal.expired) { try check(["exp": 1000], strict, at: 1000) }
        try strict.check(["exp": .number(1000.5)], at: Timestamp(milliseconds: 1_000_499))
        #expect(throws: TokenRefusal.expired) {
            try strict.check(["exp": .number(1000.5)], at: Timestamp(milliseconds: 1_000_500))
        }
    }

    @Test("nbf and iat begin a token before the leeway", arguments: ["nbf", "iat"])
    func beginning(_ name: String) throws {
        let claims = JSON.object([JSON.Member(name, 1000)])
        try check(claims, at: 940)
        #expect(throws: TokenRefusal.notYetValid) { try check(claims, at: 939) }
    }

    @Test("A missing exp is refused only if it is required")
    func requiredExpiry() throws {
        try check([:], at: 0)
        #expect(throws: TokenRefusal.expired) { try check([:], ClaimRules(requiresExpiry: true), at: 0) }
    }

    @Test("Extreme times neither trap nor extend a token")
    func extremes() throws {
        for value in [JSON.integer(.max), .number(1e300), .integer(253_402_300_800)] {
            try check(["exp": value], at: 1_800_000_000)
            #expect(throws: TokenRefusal.notYetValid) { try check(["nbf": value], at: 1_800_000_000) }
        }
        for value in [JSON.integer(.min), .number(-1e300), 0, -1] {
            #expect(throws: TokenRefusal.expired) { try check(["exp": value], at: 1_800_000_000) }
            try check(["nbf": value], at: 0)
        }
    }

    @Test("Times and audiences of a wrong type are refused")
    func wrongTypes() {
        for value in ["1000", .null, .bool(true), [], [:]] as [JSON] {
            for name in ["exp", "nbf", "iat"] {
                #expect(throws: TokenRefusal.malformed) { try check(.object([JSON.Member(name, value)]), at: 0) }
            }
        }
        for value in [1, .null, [1], ["a", 1], [:]] as [JSON] {
            #expect(throws: TokenRefusal.malformed) { try check(["aud": value], ClaimRules(audience: "a"), at: 0) }
        }
    }

    @Test("iss must be the issuer, byte for byte")
    func issuer() throws {
        let rules = ClaimRules(issuer: "https://id.example/é")
        try check(["iss": "https://id.example/é"], rules, at: 0)
        for value in ["https://id.example", "https://id.example/e\u{301}", 1, ["https://id.example/é"]] as [JSON] {
            #expect(throws: TokenRefusal.wrongIssuer) { try check(["iss": value], rules, at: 0) }
        }
        #expect(throws: TokenRefusal.wrongIssuer) { try check([:], rules, at: 0) }
    }

    @Test("aud must be or contain the audience")
    func audience() throws {
        let rules = ClaimRules(audience: "larder")
        try check(["aud": "larder"], rules, at: 0)
        try check(["aud": ["x", "larder"]], rules, at: 0)
        for value in ["lard", "larder ", [], ["x"]] as [JSON] {
            #expect(throws: TokenRefusal.wrongAudience) { try check(["aud": value], rules, at: 0) }
        }
        #expect(throws: TokenRefusal.wrongAudience) { try check([:], rules, at: 0) }
    }

    @Test("A token is verified in one call: signature first, then claims")
    func verify() throws {
        let key = try SigningKey(secret: Array(repeating: 9, count: 32), algorithm: .hs256)
        let other = try SigningKey(secret: Array(repeating: 8, count: 32), algorithm: .hs256)
        let keys = JSONWebKeySet([try key.verificationKey()])
        let claims: JSON = ["iss": "i", "exp": 1000]
        func verify(_ key: SigningKey, at seconds: Int64) throws -> JSON {
            try JSONWebToken.verify(
                try JSONWebToken.sign(claims, with: key), with: keys, allowing: [.hs256],
                rules: ClaimRules(issuer: "i"), at: Timestamp(seconds: seconds))
        }
        #expect(try verify(key, at: 0) == claims)
        #expect(throws: TokenRefusal.expired) { try verify(key, at: 2000) }
        #expect(throws: TokenRefusal.badSignature) { try verify(other, at: 2000) }
    }

    @Test("Each refusal has its own message without placeholders")
    func messages() {
        #expect(Set(TokenRefusal.allCases.map(\.message)).count == TokenRefusal.allCases.count)
    }
}
