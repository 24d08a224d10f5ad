package import CacheCore
package import ReaderAccess

/// The `Token` schema: a token without its secret.
package struct TokenDocument: Codable {
    package var id: String
    /// `configuration`, `file` or `api`.
    package var source: String
    /// `active`, `expired` or `overridden`.
    package var state: String
    package var scope: String
    package var origins, prefixes: [String]?
    package var subjects: [String]
    package var expiresAt: Timestamp?
    package var maxBytesPerSecond, maxSignatureSeconds: Int64?
    package var sharedCache: Bool
    package var createdAt: Timestamp?
    package var createdBy: String?
    /// The secret, once: in the answer to the request that makes the token.
    package var token: Omittable<String>
}

extension TokenDocument {
    init(_ token: ListedToken, at now: Timestamp, secret: String? = nil) {
        let reader = token.reader
        let hasEnded = reader.expiresAt.map { now >= $0 } ?? false
        self.init(
            id: reader.id, source: "\(token.source)",
            state: token.isOverridden ? "overridden" : hasEnded ? "expired" : "active", scope: reader.scope.rawValue,
            origins: reader.limits.origins?.sorted(), prefixes: reader.limits.prefixes, subjects: token.subjects,
            expiresAt: reader.expiresAt, maxBytesPerSecond: reader.maxBytesPerSecond,
            maxSignatureSeconds: reader.maxSignatureSeconds, sharedCache: reader.isSharedCache,
            createdAt: token.createdAt, createdBy: token.createdBy, token: .present(secret))
    }

    init(_ token: APIToken, at now: Timestamp, secret: String? = nil) {
        self.init(ListedToken(token), at: now, secret: secret)
    }
}

extension TokensFile.Entry {
    /// The members of the `TokenRequest` schema; `id` is none of `TokenPatch`.
    package static let requestKeys = [
        "id", "scope", "origins", "prefixes", "expiresAt", "maxBytesPerSecond", "maxSignatureSeconds", "sharedCache",
    ]

    /// Reads the `TokenRequest` schema, with the digest of a new secret. Throws `.invalidField`.
    init(request: JSON, digest: TokenDigest) throws(CacheError) {
        self = try Self.entry(request.merged(with: ["sha256": .string(digest.hexDigits)]), of: request)
        // Clients remove such segments from paths, so that the token could not be named.
        if [".", ".."].contains(reader.id) {
            throw .invalid("id", "An id is a name, not . or ..: choose another one.")
        }
    }

    /// The entry with a merge patch applied (RFC 7396). The name and the secret stay. Throws `.invalidField`.
    func merging(_ patch: JSON) throws(CacheError) -> Self {
        if patch["id"] != nil { throw .invalid("id", "The name of a token cannot be changed: make another token.") }
        return try Self.entry(json.merged(with: patch, whole: ["origins", "prefixes"]), of: patch)
    }

    private static func entry(_ json: JSON, of request: JSON) throws(CacheError) -> Self {
        for name in ["sha256", "subjects"] where request[name] != nil {
            throw .invalid(name, "A token of the API has a secret that the service makes: remove this member.")
        }
        return try json.decode(Self.self)
    }
}
