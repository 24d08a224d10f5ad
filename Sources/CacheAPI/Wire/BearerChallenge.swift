import ReaderAccess

/// Values of `WWW-Authenticate` for bearer tokens (RFC 6750 §3).
enum BearerChallenge {
    /// For a request without a bearer token: it has no error code (§3.1).
    static let withoutError = "Bearer realm=\"Larder\""
    /// For a token that is unknown, expired, revoked or malformed.
    static let invalidToken = "Bearer error=\"invalid_token\""
    /// For a token whose limits do not permit the request.
    static let insufficientScope = "Bearer error=\"insufficient_scope\""

    /// For a token without the scope that the request needs.
    static func insufficientScope(_ needed: AccessScope) -> String {
        "\(insufficientScope), scope=\"\(needed.rawValue)\""
    }
}
