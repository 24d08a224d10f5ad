package import CacheCore

/// An authenticated reader: the permissions of one token, certificate or signed JWT.
package struct Reader: Hashable, Sendable {
    /// The name in logs, statistics and metrics; no secret.
    package let id: String
    package let scope: AccessScope
    /// The names of the origins with allowed content; nil allows all.
    package let origins: Set<String>?
    /// The beginnings of the content paths that are allowed, as configured; nil allows all.
    package let prefixes: [String]?
    /// The time from which the token is refused; nil if it has no end.
    package let expiresAt: Timestamp?
    /// The limit of all transfers of this reader together; nil if there is none.
    package let maxBytesPerSecond: Int64?
    /// The valid prefixes in comparable form.
    private let covered: [PathPrefix]

    /// An invalid prefix allows no path.
    package init(
        id: String, scope: AccessScope, origins: Set<String>? = nil, prefixes: [String]? = nil,
        expiresAt: Timestamp? = nil, maxBytesPerSecond: Int64? = nil
    ) {
        self.id = id
        self.scope = scope
        self.origins = origins
        self.prefixes = prefixes
        self.expiresAt = expiresAt
        self.maxBytesPerSecond = maxBytesPerSecond
        covered = prefixes.map { $0.compactMap { PathPrefix($0) } } ?? []
    }

    /// Whether the reader's content is limited to origins or prefixes.
    package var isLimited: Bool { origins != nil || prefixes != nil }

    /// Whether the reader may read the content at `path`. With prefixes, a path that is no ``ContentPath`` is not
    /// admitted.
    ///
    /// - Parameters:
    ///   - origin: The name of the asset's origin.
    ///   - path: The path of the request target, such as `/o/media/a.mp4`, without the query.
    package func admits(origin: String, path: String) -> Bool {
        if let origins, !origins.contains(origin) { return false }
        guard prefixes != nil else { return true }
        guard let path = ContentPath(path) else { return false }
        return covered.contains { $0.covers(path) }
    }

    /// The refusal for content that the reader does not admit; it names the missing permission.
    package func refusal(origin: String, path: String) -> AccessRefusal {
        if let origins, !origins.contains(origin) {
            return AccessRefusal(.tokenScope, "The token \(id) lacks the permission to read the origin \(origin).")
        }
        return AccessRefusal(.tokenScope, "The token \(id) lacks the permission to read this path; see its prefixes.")
    }
}
