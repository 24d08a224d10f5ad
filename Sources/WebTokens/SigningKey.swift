package import CacheCore
import Cryptography

/// A key that signs JSON Web Signatures with one algorithm. It has no description, so that it cannot reach a log.
package struct SigningKey: Sendable {
    /// The algorithm of the key's signatures.
    package let algorithm: TokenAlgorithm
    private let material: VerificationKey.Material

    /// Makes a key from an unencrypted PEM private key: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC). RSA keys need 2048 bits
    /// (RFC 7518 §3.3).
    ///
    /// Throws `.invalidField("key")` if the text is no such key or the key does not fit the algorithm. The error does
    /// not contain the key.
    package init(pem: String, algorithm: TokenAlgorithm) throws(CacheError) {
        guard let pair = SignatureKey(privatePEM: pem) else {
            throw .invalid(
                "key",
                "The key is not an unencrypted PEM private key of RSA with 2048 to 8192 bits, an EC curve or Ed25519.")
        }
        guard pair.kind == algorithm.pairKind else {
            throw .invalid("key", "The private key does not fit the algorithm \(algorithm.rawValue).")
        }
        self.algorithm = algorithm
        material = .pair(pair)
    }

    /// Makes an HMAC key. It needs as many bytes as the hash has (RFC 7518 §3.2): 32 for HS256, 48 for HS384, 64 for
    /// HS512.
    ///
    /// Throws `.invalidField("key")` if the secret is too short or the algorithm needs a key pair.
    package init(secret: [UInt8], algorithm: TokenAlgorithm) throws(CacheError) {
        guard let least = algorithm.leastSecretBytes else {
            throw .invalid("key", "The algorithm \(algorithm.rawValue) needs a private key, no secret.")
        }
        guard secret.count >= least else {
            throw .invalid("key", "A secret for \(algorithm.rawValue) needs at least \(least) bytes.")
        }
        self.algorithm = algorithm
        material = .secret(SymmetricKey(secret))
    }

    /// The signature in its JWS form: ECDSA as the fixed-length R ‖ S (RFC 7518 §3.4).
    func signature(for input: [UInt8]) throws(CacheError) -> [UInt8] {
        let signature =
            switch material {
            case .secret(let key): algorithm.hash?.code(of: input, key)
            case .pair(let key): key.signature(of: input, algorithm.hash, isPSS: algorithm.isPSS)
            }
        guard let signature else { throw CacheError(.internal, "The token could not be signed.") }
        return signature
    }

    /// The key that verifies this key's signatures: the same pair, or the secret itself.
    package func verificationKey(id: String? = nil) throws(CacheError) -> VerificationKey {
        try VerificationKey(material, id: id, only: algorithm)
    }
}
