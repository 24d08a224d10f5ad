package import CacheCore
import Cryptography

/// A key that checks JSON Web Signatures, and the algorithms that it may be used with. It has no description.
///
/// The algorithms follow from the type of the key, never from a token: an RSA key verifies no HMAC, so that a token
/// signed with the public key as an HMAC secret is refused (RFC 8725 §2.1).
package struct VerificationKey: Sendable {
    enum Material: Sendable {
        case secret(SymmetricKey)
        case pair(SignatureKey)
    }

    /// The key identifier; nil if it has none.
    package let id: String?
    /// The algorithms that the key's type allows, narrowed by `alg` of the JWK.
    package let algorithms: Set<TokenAlgorithm>
    private let material: Material

    init(_ material: Material, id: String?, only algorithm: TokenAlgorithm? = nil) throws(CacheError) {
        let fitting = TokenAlgorithm.allCases.filter {
            switch material {
            case .secret(let key): $0.leastSecretBytes.map { $0 <= key.count } ?? false
            case .pair(let key): $0.pairKind == key.kind
            }
        }
        algorithms = Set(fitting.filter { algorithm == nil || $0 == algorithm })
        guard !algorithms.isEmpty else { throw .invalid("key", "The key is too short, or does not fit its algorithm.") }
        self.material = material
        self.id = id
    }

    /// Makes an HMAC key of at least 32 bytes. HS384 needs 48, HS512 64 (RFC 7518 §3.2).
    ///
    /// Throws `.invalidField("key")` if the secret is shorter.
    package init(secret: [UInt8], id: String? = nil) throws(CacheError) {
        try self.init(.secret(SymmetricKey(secret)), id: id)
    }

    /// Makes a key from a PEM public key: `PUBLIC KEY` (RFC 5280: RSA, P-256, P-384, P-521, Ed25519) or
    /// `RSA PUBLIC KEY` (RFC 8017).
    ///
    /// Throws `.invalidField("key")` if the text contains none.
    package init(pem: String, id: String? = nil) throws(CacheError) {
        guard let key = SignatureKey(publicPEM: pem) else {
            throw .invalid(
                "key",
                "The key is not a PEM public key: RSA with 2048 to 8192 bits, P-256, P-384, P-521 or Ed25519.")
        }
        try self.init(.pair(key), id: id)
    }

    /// Whether the signature of `input` is valid. False for an algorithm that is not in ``algorithms``.
    func isValid(_ signature: [UInt8], of input: [UInt8], _ algorithm: TokenAlgorithm) -> Bool {
        guard algorithms.contains(algorithm) else { return false }
        switch material {
        case .secret(let key):
            return algorithm.hash.map { SecureCompare.areEqual($0.code(of: input, key), signature) } ?? false
        case .pair(let key):
            return key.isValid(signature, of: input, algorithm.hash, isPSS: algorithm.isPSS)
        }
    }
}
