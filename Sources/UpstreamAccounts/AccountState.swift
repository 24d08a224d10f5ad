package import CacheCore

/// The availability of an account's credentials.
package enum AccountState: Hashable, Sendable {
    case valid
    /// Usable, but a refresh is due. Requests use them while it runs.
    case refreshSoon
    /// None, expired or refused. A refresh must precede the next request.
    case missing
}

/// A request with its authorization.
package struct AuthorizedRequest: Sendable {
    /// The URL to send: a shared access signature adds parameters, and signatures need a strict percent-encoding of the
    /// same path and query. It can contain a secret.
    package var url: UpstreamURL
    /// Fields that replace those of the same name in the request. They contain secrets.
    package var headers: HeaderList
    /// The credentials that were used, for ``UpstreamAccount/refused(status:headers:_:revision:at:)``.
    package var revision: Int
}

extension AuthorizedRequest: CustomStringConvertible {
    /// Without the query and the fields.
    package var description: String { "AuthorizedRequest \(url.redacted)" }
}

/// The figures of an account, without secrets.
package struct AccountStatus: Hashable, Sendable {
    package var kind: OriginAuth.Kind
    /// The end of the credentials in use; nil if none is stated, or without credentials.
    package var expiresAt: Timestamp?
    /// Whether they have expired and stay in use, because their source fails.
    package var isStale = false
    /// The time of the last successful refresh; nil if there was none.
    package var refreshedAt: Timestamp?
    /// Successful refreshes. Readings of a file that has not changed do not count.
    package var refreshes: Int
    /// Failed refreshes.
    package var failures: Int
    /// The reason why the last refresh failed or needs attention; nil otherwise.
    package var error: String?
}
