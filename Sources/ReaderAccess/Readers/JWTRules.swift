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
    /// Throws `.malformed` if `sub` is missing or a claim has the wrong type. An optional claim of the wrong type is
    /// not ignored, because that would widen the permissions.
    func reader(of claims: JSON) throws(TokenRefusal) -> (id: String, reader: Reader?) {
        guard case .string(let subject)? = claims["sub"], !subject.isEmpty else { throw .malformed }
        let id = Self.id(of: subject)
        guard let scope = try scope(of: claims) else { return (id, nil) }
        let prefixes = try Self.texts("larder_prefixes", of: claims)
        guard prefixes?.allSatisfy({ PathPrefix($0) != nil }) ?? true else { throw .malformed }
        var rate: Int64?
        if let given = claims["larder_max_bytes_per_second"] {
            guard case .integer(let number) = given, number > 0 else { throw .malformed }
            rate = number
        }
        let expiry = try ClaimRules.instant("exp", of: claims).map { $0 + leeway }
        let reader = Reader(
            id: id, scope: scope, origins: try Self.texts("larder_origins", of: claims).map { Set($0) },
            prefixes: prefixes, expiresAt: expiry, maxBytesPerSecond: rate)
        return (id, reader)
    }

    /// The highest scope of the scope claim; nil if there is none.
    private func scope(of claims: JSON) throws(TokenRefusal) -> AccessScope? {
        let names: [String]
        switch claims[scopeClaim] {
        case nil: return nil
        case .string(let text): names = text.split(separator: " ").map(String.init)
        default: names = try Self.texts(scopeClaim, of: claims) ?? []
        }
        return names.compactMap { name in
            AccessScope(rawValue: name.hasPrefix("larder:") ? String(name.dropFirst(7)) : name)
        }.max()
    }

    /// `jwt:` and at most 64 printable characters of the subject; other characters become `_`.
    private static func id(of subject: String) -> String {
        let printable = subject.utf8.prefix(64).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "_") }
        return "jwt:" + String(decoding: printable, as: UTF8.self)
    }

    /// An array of texts; nil if the claim is absent.
    private static func texts(_ name: String, of claims: JSON) throws(TokenRefusal) -> [String]? {
        guard let claim = claims[name] else { return nil }
        guard case .array(let entries) = claim, entries.count <= 1000 else { throw .malformed }
        var texts: [String] = []
        for entry in entries {
            guard case .string(let text) = entry else { throw .malformed }
            texts.append(text)
        }
        return texts
    }
}
