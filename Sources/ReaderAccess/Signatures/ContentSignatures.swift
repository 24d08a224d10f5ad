package import CacheCore
import Cryptography
import WebTokens

/// Verifies and makes signed content URLs in three forms: query parameters, a token in the path, and RFC 9246 tokens.
package final class ContentSignatures: Sendable {
    /// The settings.
    package struct Rules: Hashable, Sendable {
        /// How long a reader may continue with an asset after the end of its signature. RFC 9246 tokens have
        /// no such time.
        package var grace: Duration
        /// The accepted values of `iss` in RFC 9246 tokens. Tokens without `iss` are accepted with any known key.
        package var issuers: Set<String>
        /// The audience that RFC 9246 tokens with `aud` must contain; nil refuses such tokens.
        package var audience: String?

        package init(grace: Duration = .seconds(600), issuers: Set<String> = [], audience: String? = nil) {
            self.grace = grace
            self.issuers = issuers
            self.audience = audience
        }
    }

    /// The keys and rules of one configuration.
    private final class Snapshot: Sendable {
        let keys: SigningKeys
        let rules: Rules
        let generation: UInt64

        init(_ keys: SigningKeys, _ rules: Rules, generation: UInt64) {
            self.keys = keys
            self.rules = rules
            self.generation = generation
        }
    }

    /// One part of the grace table with its own lock.
    private final class GraceShard: Sendable {
        let grace: OrderedMutex<SignatureGrace>

        init(_ grace: SignatureGrace) { self.grace = OrderedMutex(.leaf, grace) }
    }

    /// A verified RFC 9246 token.
    private struct Verified: Sendable {
        var claims: URISigningClaims
        var keyID: String
        var generation: UInt64
    }

    private static let graceCapacity = 65_536
    private static let shardCount = 16

    private let snapshot: OrderedMutex<Snapshot>
    private let graces: [GraceShard]
    private let verified = OrderedMutex(.leaf, BoundedTable<TokenDigest, Verified>(capacity: 8192))

    package init(keys: SigningKeys = SigningKeys(), rules: Rules = Rules()) {
        snapshot = OrderedMutex(.leaf, Snapshot(keys, rules, generation: 0))
        graces = (0..<Self.shardCount).map { _ in
            GraceShard(SignatureGrace(duration: rules.grace, capacity: Self.graceCapacity / Self.shardCount))
        }
    }

    /// Replaces the keys. Signatures of keys that are no longer there are refused from now on, also during the grace.
    package func update(keys: SigningKeys) {
        snapshot.withLock { $0 = Snapshot(keys, $0.rules, generation: $0.generation + 1) }
        verified.withLock { $0.removeAll() }
    }

    /// Replaces the rules.
    package func update(rules: Rules) {
        snapshot.withLock { $0 = Snapshot($0.keys, rules, generation: $0.generation + 1) }
        verified.withLock { $0.removeAll() }
        for shard in graces { shard.grace.withLock { $0.duration = rules.grace } }
    }

    /// The uses that may continue after the end of their signature, for ``recall(uses:)`` of the next process: a line for
    /// each with its digest and the end of the signature in milliseconds since 1970.
    package func uses(at now: Timestamp) -> String {
        graces.flatMap { $0.grace.withLock { $0.uses(at: now) } }
            .map { "\($0.use.hexDigits) \($0.expiry.milliseconds)\n" }.joined()
    }

    /// Adds the uses of an earlier process. Lines that are none are ignored.
    package func recall(uses text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let use = TokenDigest(hexDigits: String(words[0])), let end = Int64(words[1]) else {
                continue
            }
            shard(of: use).grace.withLock { $0.began(use, until: Timestamp(milliseconds: end)) }
        }
    }

    private func shard(of use: TokenDigest) -> GraceShard {
        graces[Int(UInt(bitPattern: use.hashValue) % UInt(graces.count))]
    }

    /// The current keys.
    package var keys: SigningKeys { snapshot.withLock { $0.keys } }

    // MARK: Verification

    /// Verifies a signature for one request.
    ///
    /// - Parameters:
    ///   - presented: The signature from ``PresentedSignature/strip(target:)``.
    ///   - path: The path of the clean target.
    ///   - remainingQuery: The query of the clean target; nil if it has none.
    ///   - base: The scheme and authority of the request, such as `https://cdn.example`; RFC 9246 containers match it.
    ///   - now: The wall-clock time.
    package func verify(
        _ presented: PresentedSignature, path: String, remainingQuery: String?, base: String = "http://localhost",
        at now: Timestamp
    ) throws(AccessRefusal) -> SignatureGrant {
        let snapshot = snapshot.withLock { $0 }
        guard let contentPath = ContentPath(path), path.utf8.starts(with: "/o/".utf8) else { throw .outside }
        let secret: String
        var grant: SignatureGrant
        switch presented.form {
        case .ambiguous: throw .malformed
        case .query(let expiry, let keyID, let signature, let prefix):
            secret = signature
            grant = try Self.query(
                expiry: expiry, keyID: keyID, signature: signature, prefix: prefix, contentPath, remainingQuery,
                snapshot.keys)
        case .path(let token):
            secret = token
            grant = try Self.pathToken(token, contentPath, remainingQuery, snapshot.keys)
        case .uriSigning(let token):
            let (claims, keyID) = try self.claims(of: token, snapshot)
            try claims.admit(
                URISigningClaims.Request(path: path, contentPath: contentPath, query: remainingQuery, base: base),
                at: now)
            return SignatureGrant(
                scope: .container, keyID: keyID, expiresAt: claims.expiresAt, isGrace: false,
                renewal: try claims.renewal(path: path, keyID, snapshot.keys, now))
        }
        if let expiry = grant.expiresAt {
            let target = SignedText.covered(.exact(contentPath, query: remainingQuery))
            let use = TokenDigest(of: Array(secret.utf8) + [0] + target)
            grant.isGrace = try isGrace(use, expiry, at: now)
        }
        return grant
    }

    /// Whether the use continues after the end of its signature. Throws `.tokenExpired` if it did not begin before.
    private func isGrace(_ use: TokenDigest, _ expiry: Timestamp, at now: Timestamp) throws(AccessRefusal) -> Bool {
        let shard = shard(of: use)
        if now < expiry {
            shard.grace.withLock { $0.began(use, until: expiry) }
            return false
        }
        guard shard.grace.withLock({ $0.admits(use, at: now) }) else { throw .expired }
        return true
    }

    /// Verifies the parameters `exp`, `kid`, `sig` and `prefix`.
    private static func query(
        expiry: String, keyID: String, signature: String, prefix: String?, _ path: ContentPath, _ query: String?,
        _ keys: SigningKeys
    ) throws(AccessRefusal) -> SignatureGrant {
        guard let seconds = seconds(expiry), TokensFile.isIdentifier(keyID), signature.utf8.count <= 64,
            let code = Base64URL.decode(signature)
        else { throw .malformed }
        guard let key = keys.secret(keyID) else { throw .unknownKey }
        let target: SignedText.Target
        if let prefix {
            guard prefix.utf8.count <= 4096, let decoded = PathPrefix(decoded: PercentEncoding.decoded(prefix)) else {
                throw .malformed
            }
            target = .prefix(decoded)
        } else {
            target = .exact(path, query: query)
        }
        guard SecureCompare.areEqual(SignedText.queryCode(target, keyID: keyID, expiry: seconds, key), code) else {
            throw .forged
        }
        if case .prefix(let prefix) = target, !prefix.covers(path) { throw .outside }
        return SignatureGrant(
            scope: prefix == nil ? .exact : .prefix, keyID: keyID, expiresAt: Timestamp(seconds: seconds),
            isGrace: false)
    }

    /// Verifies a path token.
    private static func pathToken(
        _ token: String, _ path: ContentPath, _ query: String?, _ keys: SigningKeys
    ) throws(AccessRefusal) -> SignatureGrant {
        guard let token = SignedText.parse(pathToken: token) else { throw .malformed }
        guard let key = keys.secret(token.keyID) else { throw .unknownKey }
        guard SecureCompare.areEqual(SignedText.tokenCode(token.body, key), token.code) else { throw .forged }
        let isCovered =
            token.isPrefix
            ? PathPrefix(decoded: token.text)?.covers(path) ?? false
            : SignedText.covered(.exact(path, query: query)) == token.text
        guard isCovered else { throw .outside }
        return SignatureGrant(
            scope: token.isPrefix ? .prefix : .exact, keyID: token.keyID, expiresAt: Timestamp(seconds: token.expiry),
            isGrace: false)
    }

    /// The claims of an RFC 9246 token with a valid signature, from the cache if it was verified before.
    private func claims(
        of token: String, _ snapshot: Snapshot
    ) throws(AccessRefusal) -> (URISigningClaims, keyID: String) {
        guard token.utf8.count <= JSONWebToken.sizeLimit else { throw .malformed }
        let digest = TokenDigest(of: token)
        if let entry = verified.withLock({ $0[digest] }), entry.generation == snapshot.generation {
            return (entry.claims, entry.keyID)
        }
        let (claims, keyID) = try URISigningClaims.verified(token, snapshot.keys, snapshot.rules)
        verified.withLock { $0[digest] = Verified(claims: claims, keyID: keyID, generation: snapshot.generation) }
        return (claims, keyID)
    }

    /// A number of seconds since 1970 in its only form: no sign, no zero before it; at most the year 9999.
    private static func seconds(_ text: String) -> Int64? {
        guard (1...12).contains(text.utf8.count), text.utf8.allSatisfy(FieldText.isDigit), let seconds = Int64(text),
            String(seconds) == text, seconds <= SignedText.latest
        else { return nil }
        return seconds
    }
}
