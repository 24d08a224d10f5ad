/// The reason why a token is refused. It carries no part of the token.
package enum TokenRefusal: String, Error, Hashable, Sendable, CaseIterable {
    /// The text is no JWS in compact serialization, or its header or claims are not strict JSON.
    case malformed
    /// The text exceeds ``JSONWebToken/sizeLimit``.
    case tooLarge
    /// `alg` is missing from the allow-list, unknown, or `none`.
    case algorithmNotAllowed
    /// `crit` names an extension that is not understood (RFC 7515 §4.1.11).
    case unsupportedCritical
    /// No key has the token's `kid` and fits its algorithm.
    case unknownKey
    /// The signature does not match.
    case badSignature
    /// `exp` lies in the past, or is missing though it is required.
    case expired
    /// `nbf` or `iat` lies in the future.
    case notYetValid
    /// `iss` is missing or another one.
    case wrongIssuer
    /// `aud` is missing or does not contain the audience.
    case wrongAudience

    /// One sentence for the caller.
    package var message: String {
        switch self {
        case .malformed: "The token is no well-formed JSON Web Token."
        case .tooLarge: "The token exceeds \(JSONWebToken.sizeLimit) bytes."
        case .algorithmNotAllowed: "The token's signature algorithm is not allowed."
        case .unsupportedCritical: "The token requires an extension that is not supported."
        case .unknownKey: "The token's key is unknown."
        case .badSignature: "The token's signature is invalid."
        case .expired: "The token has expired."
        case .notYetValid: "The token is not valid yet."
        case .wrongIssuer: "The token is from another issuer."
        case .wrongAudience: "The token is for another audience."
        }
    }
}
