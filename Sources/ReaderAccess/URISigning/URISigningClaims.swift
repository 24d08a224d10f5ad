import CacheCore
import Crypto
import WebTokens

/// The claims of an RFC 9246 token with a valid signature.
///
/// Refused are tokens that would grant more than their signer meant if a claim were ignored: `cdniip`, `cdnicrit`, an
/// unknown `cdniv`, a renewal other than by cookie, and tokens without `cdniuc`. There is no leeway for clocks
/// (§2.1.4).
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
        /// `cdniets`: the life of the renewed token in seconds.
        var seconds: Int64
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
        if !rules.issuers.isEmpty {
            guard case .string(let issuer)? = claims["iss"], rules.issuers.contains(issuer) else {
                throw AccessRefusal(.tokenInvalid, "The issuer of the URI signing package is not allowed.")
            }
        }
        guard claims["cdniv"] == nil || claims["cdniv"] == .integer(1), claims["cdnicrit"] == nil,
            claims["cdniip"] == nil
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

    /// Checks the time before which the token is invalid, and the URI of a request. The end is checked by the caller,
    /// which knows of the grace.
    func admit(_ request: Request, at now: Timestamp) throws(AccessRefusal) {
        if let notBefore, now < notBefore {
            throw AccessRefusal(.tokenInvalid, "The URI signing package is not valid yet.")
        }
        guard container.covers(request) else { throw .outside }
    }

    /// The renewed token for a path; nil if the token does not ask for one.
    func renewal(
        path: String, _ keyID: String, _ keys: SigningKeys, _ now: Timestamp
    ) throws(AccessRefusal) -> SignatureGrant.Renewal? {
        guard let rule = renewalRule else { return nil }
        guard case .object(let members) = json else { throw .malformed }
        let expiry = min(now.seconds + rule.seconds, SignedText.latest)
        var renewed = members.filter { $0.key != "exp" && $0.key != "iat" }
        renewed.append(JSON.Member("iat", .integer(now.seconds)))
        renewed.append(JSON.Member("exp", .integer(expiry)))
        let id = keys.signingKey(keyID) != nil ? keyID : keys.preferredID(secretsOnly: false)
        guard let id, let key = keys.signingKey(id),
            let token = try? JSONWebToken.sign(.object(renewed), header: [JSON.Member("kid", .string(id))], with: key)
        else {
            throw AccessRefusal(.tokenInvalid, "The URI signing package cannot be renewed, because no key can sign.")
        }
        return SignatureGrant.Renewal(
            token: token, path: Self.cookiePath(path, depth: rule.depth), expiresAt: Timestamp(seconds: expiry))
    }

    /// The renewal that the claims ask for. Only cookies (`cdnistt` 1) are supported, and need `cdniets`.
    private static func renewalRule(_ claims: JSON) throws(AccessRefusal) -> RenewalRule? {
        let unsupported = AccessRefusal(
            .tokenInvalid, "The URI signing package asks for a renewal that is not supported; only cookies are.")
        guard claims["cdnistt"] != nil || claims["cdniets"] != nil || claims["cdnistd"] != nil else { return nil }
        guard claims["cdnistt"] == .integer(1), case .integer(let seconds)? = claims["cdniets"],
            (1...315_360_000).contains(seconds), case .integer(let depth) = claims["cdnistd"] ?? 0,
            (0...256).contains(depth)
        else { throw unsupported }
        return RenewalRule(seconds: seconds, depth: depth)
    }

    /// The first `depth` directories of a path, with a slash at the end; `/` for 0.
    static func cookiePath(_ path: String, depth: Int64) -> String {
        let directories = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().dropLast()
        return "/" + directories.prefix(Int(depth)).map { $0 + "/" }.joined()
    }
}

/// The URI container of RFC 9246 §2.1.15.
enum URIContainer: Sendable {
    /// SHA-256 of the URI, in the URL segment form of RFC 6920 §5.
    case hash([UInt8])
    /// A regular expression for the whole URI.
    case regex(ExtendedRegex)

    /// Nil for another form, another hash, or a pattern that is not supported.
    init?(_ text: String) {
        if text.hasPrefix("regex:") {
            guard let regex = ExtendedRegex(String(text.dropFirst(6))) else { return nil }
            self = .regex(regex)
        } else if text.hasPrefix("hash:sha-256;") {
            guard let digest = Base64URL.decode(text.dropFirst(13)), digest.count == 32 else { return nil }
            self = .hash(digest)
        } else {
            return nil
        }
    }

    /// Whether the container covers the URI of a request, in its normal form (RFC 3986 §6.2.2). A URI with encoded
    /// slashes is covered by no regular expression, because `[^/]*` would match them.
    func covers(_ request: URISigningClaims.Request) -> Bool {
        guard Self.isBase(request.base) else { return false }
        let base = FieldText.lowered(request.base)
        let query = request.query.map { "?" + PercentEncoding.normalized(query: $0) } ?? ""
        let uri = base + request.contentPath.normalized + query
        switch self {
        case .regex(let regex): return !request.contentPath.hasHiddenSlash && regex.matches(uri.utf8)
        case .hash(let digest):
            let received = base + request.path + (request.query.map { "?" + $0 } ?? "")
            return [uri, received].contains {
                SecureCompare.areEqual(Array(SHA256.hash(data: Array($0.utf8))), digest)
            }
        }
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
