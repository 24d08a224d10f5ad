package import CacheCore

/// The rules for the registered claims of a token (RFC 7519 §4.1).
package struct ClaimRules: Sendable {
    /// The required `iss`; nil allows any.
    package var issuer: String?
    /// The audience that `aud` must contain; nil allows any.
    package var audience: String?
    /// The tolerance for clocks that differ.
    package var leeway: Duration
    /// Whether a token without `exp` is refused.
    package var requiresExpiry: Bool

    package init(
        issuer: String? = nil, audience: String? = nil, leeway: Duration = .seconds(60), requiresExpiry: Bool = false
    ) {
        self.issuer = issuer
        self.audience = audience
        self.leeway = leeway
        self.requiresExpiry = requiresExpiry
    }

    /// Checks the claims at a time.
    ///
    /// Throws `.malformed` for a claim of the wrong type, `.expired`, `.notYetValid`, `.wrongIssuer` or
    /// `.wrongAudience`.
    package func check(_ claims: JSON, at now: Timestamp) throws(TokenRefusal) {
        if let expiry = try Self.instant("exp", of: claims) {
            guard now < expiry + leeway else { throw .expired }
        } else if requiresExpiry {
            throw .expired
        }
        for name in ["nbf", "iat"] {
            if let time = try Self.instant(name, of: claims), now < time - leeway { throw .notYetValid }
        }
        if let issuer {
            guard let given = claims["iss"]?.string, given.utf8.elementsEqual(issuer.utf8) else { throw .wrongIssuer }
        }
        if let audience {
            guard try Self.audiences(of: claims).contains(audience) else { throw .wrongAudience }
        }
    }

    /// A `NumericDate` (RFC 7519 §2): seconds, with or without a fraction, clamped to the years 1970 to 9999. Nil if
    /// the claim is absent.
    package static func instant(_ name: String, of claims: JSON) throws(TokenRefusal) -> Timestamp? {
        let limit: Int64 = 253_402_300_799
        switch claims[name] {
        case nil: return nil
        case .integer(let seconds): return Timestamp(seconds: min(max(seconds, 0), limit))
        case .number(let seconds):
            return Timestamp(milliseconds: Int64(min(max(seconds, 0), Double(limit)) * 1000))
        default: throw .malformed
        }
    }

    /// `aud`: a text or an array of texts; empty if it is absent.
    private static func audiences(of claims: JSON) throws(TokenRefusal) -> [String] {
        if let audience = claims["aud"]?.string { return [audience] }
        return try claims.claim("aud") ?? []
    }
}

extension JSON {
    /// A claim, or a parameter of a header; nil if it is absent. Throws `.malformed` if it has the wrong type.
    package func claim<T: Decodable>(_ name: String, as type: T.Type = T.self) throws(TokenRefusal) -> T? {
        guard let claim = self[name] else { return nil }
        guard let value = try? claim.decode(type) else { throw .malformed }
        return value
    }
}
