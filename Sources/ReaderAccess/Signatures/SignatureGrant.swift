package import CacheCore

/// The permission that a verified URL signature gives for one request.
package struct SignatureGrant: Hashable, Sendable {
    /// The covered content.
    package enum Scope: String, Hashable, Sendable, CaseIterable {
        /// One path with its query.
        case exact
        /// All paths below a prefix, with any query.
        case prefix
        /// The URIs of an RFC 9246 container.
        case container
    }

    /// A renewed RFC 9246 token (§3), for the field `Set-Cookie`. Its description hides the token.
    package struct Renewal: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
        /// The value of the cookie `URISigningPackage`.
        package let token: String
        /// The attribute `Path` of the cookie.
        package let path: String
        /// The time when the token ends.
        package let expiresAt: Timestamp

        package var description: String { "(renewal)" }
        package var debugDescription: String { description }
    }

    package var scope: Scope
    /// The key that signed.
    package var keyID: String
    /// The end of the signature; nil for an RFC 9246 token without `exp`.
    package var expiresAt: Timestamp?
    /// Whether the signature has ended, and the reader continues because it began before.
    package var isGrace: Bool
    /// The renewed token; nil if the token does not ask for one.
    package var renewal: Renewal?

    /// The name of such readers in statistics: `url:` and the key identifier.
    package var readerID: String { "url:" + keyID }
}
