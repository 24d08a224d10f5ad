import CacheCore
package import WebTokens

/// The rules for readers with JSON Web Tokens of an identity provider.
package struct JWTRules: Hashable, Sendable {
    /// The required `iss`; nil allows any issuer with a known key.
    package var issuer: String?
    /// The audience that `aud` must contain; nil allows any.
    package var audience: String?
    /// The accepted algorithms.
    package var algorithms: Set<TokenAlgorithm>
    /// The claim with the scopes: a text with spaces between them (RFC 8693 §4.2), or an array.
    package var scopeClaim: String
    /// The tolerance for clocks that differ.
    package var leeway: Duration

    package init(
        issuer: String?, audience: String?, algorithms: Set<TokenAlgorithm> = [.rs256, .es256],
        scopeClaim: String = "scope", leeway: Duration = .seconds(60)
    ) {
        self.issuer = issuer
        self.audience = audience
        self.algorithms = algorithms
        self.scopeClaim = scopeClaim
        self.leeway = leeway
    }

    /// The rules for the registered claims. A token without `exp` is refused (RFC 9068 §2.2).
    var claimRules: ClaimRules {
        ClaimRules(issuer: issuer, audience: audience, leeway: leeway, requiresExpiry: true)
    }

    /// The reader of verified claims; nil if they grant none of the scopes.
    ///
    /// Throws `.malformed` if none of `sub`, `client_id`, `azp` and `iss` names the reader, or if a claim has the wrong
    /// type. An optional claim of the wrong type is not ignored, because that would widen the permissions.
    func reader(of claims: JSON) throws(TokenRefusal) -> (id: String, reader: Reader?) {
        // Tokens of clients without a user can lack `sub` (RFC 9068 §2.2 requires it, RFC 7519 §4.1.2 does not).
        var names: [String] = []
        for claim in ["sub", "client_id", "azp", "iss"] {
            if let name = try claims.claim(claim, as: String.self), !name.isEmpty { names.append(name) }
        }
        guard let name = names.first else { throw .malformed }
        let id = Self.id(of: name)
        let scopes = try scopes(of: claims)
        guard let scope = [AccessScope.admin, .write, .read, .sign].first(where: scopes.contains) else {
            return (id, nil)
        }
        let origins = try claims.claim("larder_origins", as: List<1000, String>.self)
        let prefixes = try claims.claim("larder_prefixes", as: List<1000, Checked<PrefixRule>>.self)
        let rate = try claims.claim("larder_max_bytes_per_second", as: Limited<Positive>.self)
        let validity = try claims.claim("larder_max_signature_seconds", as: Limited<Positive>.self)
        let isSharedCache = try claims.claim("larder_shared_cache", as: Bool.self)
        let expiry = try ClaimRules.instant("exp", of: claims).map { $0 + leeway }
        let reader = Reader(
            id: id, scope: scope, signsURLs: scopes.contains(.sign), origins: origins.map { Set($0.values) },
            prefixes: prefixes?.values.map(\.text), expiresAt: expiry, maxBytesPerSecond: rate?.value,
            maxSignatureSeconds: validity?.value, isSharedCache: isSharedCache ?? false)
        return (id, reader)
    }

    /// The known scopes of the scope claim.
    private func scopes(of claims: JSON) throws(TokenRefusal) -> Set<AccessScope> {
        let names: [String]
        switch claims[scopeClaim] {
        case nil: return []
        case .string(let text): names = text.split(separator: " ").map(String.init)
        default: names = try claims.claim(scopeClaim, as: List<1000, String>.self)?.values ?? []
        }
        return Set(
            names.compactMap { name in
                AccessScope(rawValue: name.hasPrefix("larder:") ? String(name.dropFirst(7)) : name)
            })
    }

    /// Whether the payload of a token claims to be for this service: its issuer is the configured one, and its audience
    /// fits. False if neither is configured; then only a signature can tell.
    ///
    /// Throws `.wrongIssuer`, `.wrongAudience` or `.malformed` for a token of another service. A payload that is no
    /// strict JSON is one for this service if it contains both names.
    func areAddressed(by payload: [UInt8]) throws(TokenRefusal) -> Bool {
        let names = [issuer, audience].compactMap(\.self)
        guard !names.isEmpty else { return false }
        guard let claims = try? JSONParser.parse(payload), case .object = claims else {  // its text decides
            let text = String(decoding: payload, as: UTF8.self)
            guard names.allSatisfy({ text.contains($0) }) else { throw .malformed }
            return true
        }
        try ClaimRules(issuer: issuer, audience: audience).check(
            JSON(present: ["iss": claims["iss"], "aud": claims["aud"]]), at: Timestamp(milliseconds: 0))
        return true
    }

    /// `jwt:` and at most 64 printable characters of the subject; other characters become `_`.
    private static func id(of subject: String) -> String {
        let printable = subject.utf8.prefix(64).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "_") }
        return "jwt:" + String(decoding: printable, as: UTF8.self)
    }
}
