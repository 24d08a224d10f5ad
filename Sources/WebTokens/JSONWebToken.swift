package import CacheCore

/// JSON Web Tokens (RFC 7519) in the compact serialization of JSON Web Signatures (RFC 7515 §3.1).
package enum JSONWebToken {
    /// The maximum length of a token in bytes.
    package static let sizeLimit = 16 * 1024

    /// Signs a claims set and returns `header.payload.signature`.
    ///
    /// Throws `.internal` if `header` contains `alg` or the result would exceed ``sizeLimit``.
    ///
    /// - Parameters:
    ///   - claims: The claims, normally an object.
    ///   - header: Further members of the JOSE header, such as `kid`. `typ` is `JWT` unless it is given here.
    ///   - key: The key; it determines `alg`.
    package static func sign(
        _ claims: JSON, header: [JSON.Member] = [], with key: SigningKey
    ) throws(CacheError) -> String {
        guard !header.contains(where: { $0.key == "alg" }) else {
            throw CacheError(.internal, "The key determines the token's algorithm; the header must not contain one.")
        }
        var members = [JSON.Member("alg", .string(key.algorithm.rawValue))]
        if !header.contains(where: { $0.key == "typ" }) { members.append(JSON.Member("typ", "JWT")) }
        members += header
        let input = Base64URL.encode(JSON.object(members).text.utf8) + "." + Base64URL.encode(claims.text.utf8)
        let token = input + "." + Base64URL.encode(try key.signature(for: Array(input.utf8)))
        guard token.utf8.count <= sizeLimit else {
            throw CacheError(.internal, "The token exceeds \(sizeLimit) bytes.")
        }
        return token
    }

    /// Parses a token without a check of its signature; the same as ``JSONWebSignature/parse(_:understanding:)``.
    package static func parse(
        _ token: some StringProtocol, understanding understood: Set<String> = []
    ) throws(TokenRefusal) -> JSONWebSignature {
        try JSONWebSignature.parse(token, understanding: understood)
    }

    /// The payload of a token without any check, to find out for which service it is: the second part, of which other
    /// characters than those of Base64url are ignored. Empty if there is none.
    package static func unverifiedPayload(of token: some StringProtocol) -> [UInt8] {
        let parts = token.utf8.split(separator: UInt8(ascii: "."), maxSplits: 2, omittingEmptySubsequences: false)
        return parts.count >= 2 ? Base64URL.decodeLeniently(parts[1]) : []
    }

    /// Verifies a token's signature and registered claims, and returns the claims.
    ///
    /// - Parameters:
    ///   - keys: The keys of the issuer.
    ///   - allowed: The accepted algorithms.
    ///   - rules: The rules for `exp`, `nbf`, `iat`, `iss` and `aud`.
    ///   - now: The wall-clock time.
    ///   - understood: The names that `crit` may contain.
    package static func verify(
        _ token: some StringProtocol, with keys: JSONWebKeySet, allowing allowed: Set<TokenAlgorithm>,
        rules: ClaimRules, at now: Timestamp, understanding understood: Set<String> = []
    ) throws(TokenRefusal) -> JSON {
        let claims = try parse(token, understanding: understood).verifiedClaims(with: keys, allowing: allowed)
        try rules.check(claims, at: now)
        return claims
    }
}
