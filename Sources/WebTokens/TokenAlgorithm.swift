import Cryptography

/// A signature algorithm of JSON Web Signatures (RFC 7518 §3.1, RFC 8037 §3.1).
package enum TokenAlgorithm: String, Hashable, Sendable, CaseIterable {
    case hs256 = "HS256", hs384 = "HS384", hs512 = "HS512"
    case rs256 = "RS256", rs384 = "RS384", rs512 = "RS512"
    case ps256 = "PS256", ps384 = "PS384", ps512 = "PS512"
    case es256 = "ES256", es384 = "ES384", es512 = "ES512"
    case edDSA = "EdDSA"

    /// The least length of an HMAC key in bytes: the length of the hash (RFC 7518 §3.2). Nil for algorithms with key
    /// pairs.
    package var leastSecretBytes: Int? { pairKind == nil ? hash?.byteCount : nil }

    /// The hash function of the input; nil if the algorithm contains its own.
    var hash: HashFunction? {
        switch self {
        case .hs256, .rs256, .ps256, .es256: .sha256
        case .hs384, .rs384, .ps384, .es384: .sha384
        case .hs512, .rs512, .ps512, .es512: .sha512
        case .edDSA: nil
        }
    }

    /// Whether the padding is RSASSA-PSS.
    var isPSS: Bool { [.ps256, .ps384, .ps512].contains(self) }

    /// The type of the key pair; nil for HMAC.
    var pairKind: SignatureKey.Kind? {
        switch self {
        case .hs256, .hs384, .hs512: nil
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: .rsa
        case .es256: .p256
        case .es384: .p384
        case .es512: .p521
        case .edDSA: .ed25519
        }
    }
}
