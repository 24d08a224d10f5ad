package import WebTokens

/// The result of a look-up of a bearer token or a client certificate.
package enum TokenLookup: Hashable, Sendable {
    case reader(Reader)
    /// No reader has this token or certificate.
    case unknown
    /// A JWT for another service, or one that no key of this service has signed.
    case foreign(TokenRefusal)
    /// The token was removed from the configuration.
    case revoked
    /// A token of this service in a field that is not a single bearer credential.
    case misplaced
    /// The token has ended: 401 `invalid_token` for bearer tokens (RFC 6750 §3.1). `id` names it; nil for a JWT.
    case expired(id: String?)
    /// The JWT is refused for another reason.
    case invalid(TokenRefusal)
    /// The JWT is valid, but grants none of the scopes `read`, `write`, `sign` and `admin`.
    case withoutScope(id: String)

    /// The reader; nil if there is none.
    package var reader: Reader? {
        if case .reader(let reader) = self { reader } else { nil }
    }

    /// Whether the token is one of this service, valid or not. Such a token must not reach an upstream.
    package var isOwn: Bool {
        switch self {
        case .unknown, .foreign: false
        case .reader, .revoked, .misplaced, .expired, .invalid, .withoutScope: true
        }
    }

    /// The reason of a refusal as one sentence without secrets; nil for a reader.
    package var message: String? {
        switch self {
        case .reader: nil
        case .unknown: "The token is unknown."
        case .foreign(let refusal): refusal.message
        case .revoked: "The token has been revoked."
        case .misplaced: "A request needs exactly one Authorization field, with one bearer token."
        case .expired(let id): "The token\(id.map { " " + $0 } ?? "") has expired."
        case .invalid(let refusal): refusal.message
        case .withoutScope(let id): "The token \(id) has none of the scopes read, write, sign and admin."
        }
    }
}
