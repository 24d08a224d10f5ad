import CacheCore
import Cryptography
import WebTokens

/// The claims of an RFC 9246 token with a valid signature.
///
/// Refused are tokens that would grant more than their signer meant if a claim were ignored: `jti`, `cdniip`,
/// `cdnicrit`, an unknown `cdniv`, a renewal other than by cookie, and tokens without `cdniuc`. There is neither a
/// leeway for clocks nor a grace after `exp` (§2.1.4).
struct URISigningClaims: Sendable {
    /// A request that the container is compared with.
    struct Request: Sendable {
        /// The path as the client sent it, without the token.
        var path: String
        var contentPath: ContentPath
        var query: String?
        /// Scheme and authority.
        var base: String
    }

    /// The renewal of a token by cookie (§3).
    private struct RenewalRule: Sendable {
        /// `cdniets`: the life of the renewed token.
        var life: Duration
        /// `cdnistd`: the number of path segments of the cookie's `Path`.
        var depth: Int64
    }

    /// `exp`; nil if there is none.
    let expiresAt: Timestamp?
    private let notBefore: Timestamp?
    private let container: URIContainer
    private let renewalRule: RenewalRule?
    /// All claims, for the renewed token.
    private let json: JSON

    /// Verifies the signature of a token, and its claims apart from the request and the time.
    static func verified(
        _ token: String, _ keys: SigningKeys, _ rules: ContentSignatures.Rules
    ) throws(AccessRefusal) -> (URISigningClaims, keyID: String) {
        let (claims, keyID): (JSON, String)
        do {
            let parsed = try JSONWebToken.parse(token)
            claims = try parsed.verifiedClaims(with: keys.verificationKeys, allowing: [.hs256, .es256])
            // Only a token without a kid needs the name of the key that verified it.
            keyID = parsed.keyID ?? "(unnamed)"
        } catch {
            switch error {
            case .unknownKey: throw .unknownKey
            case .badSignature: throw .forged
            default: throw .malformed
            }
        }
        return (try URISigningClaims(claims, rules), keyID)
    }

    private init(_ claims: JSON, _ rules: ContentSignatures.Rules) throws(AccessRefusal) {
        do {
            expiresAt = try ClaimRules.instant("exp", of: claims)
            notBefore = try ClaimRules.instant("nbf", of: claims)
            // A recipient that does not identify itself with a value of aud refuses the token (RFC 7519 §4.1.3).
            if claims["aud"] != nil {
                guard let audience = rules.audience else { throw TokenRefusal.wrongAudience }
                try ClaimRules(audience: audience).check(
                    .object([JSON.Member("aud", claims["aud"] ?? .null)]), at: Timestamp(milliseconds: 0))
            }
        } catch {
            throw AccessRefusal(.tokenInvalid, "The URI signing package is for another audience, or malformed.")
        }
        // An issuer that is not known as acceptable is refused, also without any known one (§2.1.1).
        if let issuer = claims["iss"] {
            guard case .string(let name) = issuer, rules.issuers.contains(name) else {
                throw AccessRefusal(
                    .tokenInvalid,
                    "The issuer of the URI signing package is not accepted; add it to access.signing.issuers.")
            }
        }
        // Without storage of JWT IDs, a token with one is refused (§2.1.7).
        guard claims["jti"] == nil else {
            throw AccessRefusal(
                .tokenInvalid,
                "The URI signing package is for a single use (jti), but range reads repeat a URI; sign it without jti.")
        }
        guard claims["cdniv"].map({ Self.integer($0) == 1 }) ?? true, claims["cdnicrit"] == nil, claims["cdniip"] == nil
        else {
            throw AccessRefusal(.tokenInvalid, "The URI signing package needs an extension that is not supported.")
        }
        guard case .string(let text)? = claims["cdniuc"], let container = URIContainer(text) else {
            throw AccessRefusal(.tokenInvalid, "The URI container of the URI signing package is not supported.")
        }
        self.container = container
        renewalRule = try Self.renewalRule(claims)
        json = claims
    }

    /// Checks the times between which the token is valid (§2.1.4, §2.1.5), and the URI of a request.
    func admit(_ request: Request, at now: Timestamp) throws(AccessRefusal) {
        if let notBefore, now < notBefore {
            throw AccessRefusal(.tokenInvalid, "The URI signing package is not valid yet.")
        }
        guard container.covers(request) else { throw .outside }
        if let expiresAt, now >= expiresAt { throw .expired }
    }

    /// The renewed token for a path; nil if the token does not ask for one, or if the path has fewer segments than
    /// `cdnistd` (§2.1.14).
    func renewal(
        path: String, _ keyID: String, _ keys: SigningKeys, _ now: Timestamp
    ) throws(AccessRefusal) -> SignatureGrant.Renewal? {
        guard let rule = renewalRule, let cookiePath = Self.cookiePath(path, depth: rule.depth) else { return nil }
        guard case .object(let members) = json else { throw .malformed }
        let expiry = min(now + rule.life, Timestamp(seconds: SignedText.latest))
        var renewed = members.filter { $0.key != "exp" && $0.key != "iat" }
        renewed.append(JSON.Member("iat", .integer(now.seconds)))
        renewed.append(JSON.Member("exp", Self.numericDate(expiry)))
        let id = keys.signingKey(keyID) != nil ? keyID : keys.preferredID(secretsOnly: false)
        guard let id, let key = keys.signingKey(id),
            let token = try? JSONWebToken.sign(.object(renewed), header: [JSON.Member("kid", .string(id))], with: key)
        else {
            throw AccessRefusal(.tokenInvalid, "The URI signing package cannot be renewed, because no key can sign.")
        }
        return SignatureGrant.Renewal(token: token, path: cookiePath, expiresAt: expiry)
    }

    /// The renewal that the claims ask for: none for `cdnistt` 0 or without it, else by cookie (1), which needs
    /// `cdniets` (§2.1.12, §2.1.13).
    private static func renewalRule(_ claims: JSON) throws(AccessRefusal) -> RenewalRule? {
        let unsupported = AccessRefusal(
            .tokenInvalid, "The URI signing package asks for a renewal that is not supported; only cookies are.")
        let seconds: Double?
        do throws(TokenRefusal) { seconds = try claims.claim("cdniets") } catch { throw unsupported }
        guard seconds.map({ $0 > 0 && $0 <= 315_360_000 }) ?? true, let depth = integer(claims["cdnistd"] ?? 0),
            (0...256).contains(depth)
        else { throw unsupported }
        switch claims["cdnistt"].map(integer) {
        case nil, .some(0): return nil
        case .some(1):
            guard let seconds else { throw unsupported }
            return RenewalRule(life: .seconds(seconds), depth: depth)
        default: throw unsupported
        }
    }

    /// The value of a JSON number without a fraction, such as `1` or `1.0`; nil for other values.
    private static func integer(_ json: JSON) -> Int64? {
        switch json {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value)
        default: nil
        }
    }

    /// A `NumericDate` (RFC 7519 §2).
    private static func numericDate(_ time: Timestamp) -> JSON {
        time.milliseconds % 1000 == 0 ? .integer(time.seconds) : .number(Double(time.milliseconds) / 1000)
    }

    /// The first `depth` segments of a path, with the slash behind them if there is one; `/` for 0. Nil if the path has
    /// fewer segments.
    static func cookiePath(_ path: String, depth: Int64) -> String? {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard depth > 0 else { return "/" }
        guard segments.count > depth || segments.count == depth && segments.last != "" else { return nil }
        return "/" + segments.prefix(Int(depth)).joined(separator: "/") + (segments.count > depth ? "/" : "")
    }
}

/// The URI container of RFC 9246 §2.1.15.
enum URIContainer: Sendable {
    /// SHA-256 of the URI, in the URL segment form of RFC 6920 §5.
    case hash([UInt8])
    /// A regular expression for the whole URI, and its form for URIs with encoded slashes; nil: it covers none of them.
    case regex(ExtendedRegex, ofHiddenSlashes: ExtendedRegex?)

    /// Nil for another form, another hash, or a pattern that is not supported.
    init?(_ text: String) {
        if text.hasPrefix("regex:") {
            let pattern = String(text.dropFirst(6))
            guard let regex = ExtendedRegex(pattern) else { return nil }
            self = .regex(regex, ofHiddenSlashes: ExtendedRegex(hidingSlashesIn: pattern))
        } else if text.hasPrefix("hash:sha-256;") {
            guard let digest = Base64URL.decode(text.dropFirst(13)), digest.count == 32 else { return nil }
            self = .hash(digest)
        } else {
            return nil
        }
    }

    /// Whether the container covers the URI of a request, in its normal form (RFC 3986 §6.2.2), with or without the
    /// default port of the scheme (§6.2.3). Encoded slashes and backslashes are covered by their own escapes in a
    /// regular expression only, because `[^/]*` would match them.
    func covers(_ request: URISigningClaims.Request) -> Bool {
        guard Self.isBase(request.base) else { return false }
        let query = request.query.map { "?" + PercentEncoding.normalized(query: $0) } ?? ""
        let normal = request.contentPath.normalized + query
        let bases = Self.spellings(ofBase: FieldText.lowered(request.base))
        switch self {
        case .regex(let regex, let hidden):
            guard request.contentPath.hasHiddenSlash else {
                return bases.contains { regex.matches(($0 + normal).utf8) }
            }
            return bases.contains { hidden?.matches(ExtendedRegex.hidingSlashes(in: $0 + normal)) ?? false }
        case .hash(let digest):
            let received = request.path + (request.query.map { "?" + $0 } ?? "")
            return bases.flatMap { [$0 + normal, $0 + received] }.contains {
                SecureCompare.areEqual(HashFunction.sha256.digest(of: $0.utf8), digest)
            }
        }
    }

    /// The base without and with the port of its scheme, if it has this port or none; else the base alone.
    private static func spellings(ofBase base: String) -> [String] {
        let port = base.hasPrefix("https:") ? ":443" : ":80"
        if base.hasSuffix(port) { return [String(base.dropLast(port.count)), base] }
        if base.hasSuffix(":") { return [String(base.dropLast()), base.dropLast() + port] }
        let hasPort = base.utf8.reversed().prefix { $0 != UInt8(ascii: ":") }.allSatisfy(FieldText.isDigit)
        return hasPort ? [base] : [base, base + port]
    }

    /// Whether the text is a scheme and an authority only; another character could make up a path.
    private static func isBase(_ text: String) -> Bool {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let authority = text.utf8[colon...].dropFirst(3)
        return ["http", "https"].contains(FieldText.lowered(text[..<colon]))
            && text.utf8[colon...].starts(with: "://".utf8) && !authority.isEmpty
            && authority.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@\\".utf8.contains($0) }
    }
}
