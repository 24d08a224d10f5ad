/// A signature algorithm of JSON Web Signatures (RFC 7518 §3.1, RFC 8037 §3.1).
package enum TokenAlgorithm: String, Hashable, Sendable, CaseIterable {
    case hs256 = "HS256", hs384 = "HS384", hs512 = "HS512"
    case rs256 = "RS256", rs384 = "RS384", rs512 = "RS512"
    case ps256 = "PS256", ps384 = "PS384", ps512 = "PS512"
    case es256 = "ES256", es384 = "ES384", es512 = "ES512"
    case edDSA = "EdDSA"

    /// The least length of an HMAC key in bytes: the length of the hash (RFC 7518 §3.2). Nil for algorithms with key
    /// pairs.
    package var leastSecretBytes: Int? {
        switch self {
        case .hs256: 32
        case .hs384: 48
        case .hs512: 64
        default: nil
        }
    }
}
