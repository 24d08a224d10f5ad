package import CacheCore

/// An authenticated reader: the permissions of one token, certificate or signed JWT.
package struct Reader: Hashable, Sendable {
    /// The name in logs, statistics and metrics; no secret.
    package let id: String
    package let scope: AccessScope
    /// Whether the reader may sign URLs beside the calls of its scope: a JWT can have several scopes.
    package let signsURLs: Bool
    /// The origins and path prefixes that the reader is limited to.
    package let limits: ContentLimits
    /// The time from which the token is refused; nil if it has no end.
    package let expiresAt: Timestamp?
    /// The limit of all transfers of this reader together; nil if there is none.
    package let maxBytesPerSecond: Int64?
    /// The longest validity of a signed URL that the reader makes, in seconds; nil if there is no limit.
    package let maxSignatureSeconds: Int64?
    /// Whether the reader is a shared cache that authorizes its own clients, so that it may reuse responses.
    package let isSharedCache: Bool

    /// An invalid prefix allows no path.
    package init(
        id: String, scope: AccessScope, signsURLs: Bool = false, origins: Set<String>? = nil,
        prefixes: [String]? = nil, expiresAt: Timestamp? = nil, maxBytesPerSecond: Int64? = nil,
        maxSignatureSeconds: Int64? = nil, isSharedCache: Bool = false
    ) {
        self.id = id
        self.scope = scope
        self.signsURLs = signsURLs || scope.includes(.sign)
        limits = ContentLimits(origins: origins, prefixes: prefixes)
        self.expiresAt = expiresAt
        self.maxBytesPerSecond = maxBytesPerSecond
        self.maxSignatureSeconds = maxSignatureSeconds
        self.isSharedCache = isSharedCache
    }

    /// Whether the reader's scope permits a call that needs `needed`.
    package func permits(_ needed: AccessScope) -> Bool {
        needed == .sign ? signsURLs : scope.includes(needed)
    }

    /// Whether the reader's content is limited to origins or prefixes.
    package var isLimited: Bool { limits.isLimited }

    /// The owner of the jobs and plans that the reader makes.
    package var owner: TokenOwner { TokenOwner(id: id, limits: limits) }
}
