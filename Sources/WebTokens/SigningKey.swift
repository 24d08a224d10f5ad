package import CacheCore
import Crypto
import CryptoExtras

/// A key that signs JSON Web Signatures with one algorithm. It has no description, so that it cannot reach a log.
package struct SigningKey: Sendable {
    private enum Material: Sendable {
        case secret(SymmetricKey)
        case rsa(_RSA.Signing.PrivateKey)
        case p256(P256.Signing.PrivateKey)
        case p384(P384.Signing.PrivateKey)
        case p521(P521.Signing.PrivateKey)
        case ed25519(Curve25519.Signing.PrivateKey)
    }

    /// The algorithm of the key's signatures.
    package let algorithm: TokenAlgorithm
    private let material: Material

    /// Makes a key from an unencrypted PEM private key: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC). RSA keys need 2048 bits
    /// (RFC 7518 §3.3).
    ///
    /// Throws `.invalidField("key")` if the text is no such key or the key does not fit the algorithm. The error does
    /// not contain the key.
    package init(pem: String, algorithm: TokenAlgorithm) throws(CacheError) {
        let labels: Set = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]
        guard let der = PEMText.block(of: labels, in: pem)?.der else {
            throw .invalid("key", "The key is not an unencrypted PEM private key.")
        }
        self.algorithm = algorithm
        do {
            material =
                switch algorithm {
                case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
                    .rsa(try _RSA.Signing.PrivateKey(derRepresentation: der))
                case .es256: .p256(try P256.Signing.PrivateKey(derRepresentation: der))
                case .es384: .p384(try P384.Signing.PrivateKey(derRepresentation: der))
                case .es512: .p521(try P521.Signing.PrivateKey(derRepresentation: der))
                case .edDSA: .ed25519(try Self.ed25519(der))
                case .hs256, .hs384, .hs512: throw CryptoKitError.incorrectParameterSize
                }
        } catch {
            // The underlying error says nothing that an administrator could use, and might hold a part of the key.
            throw .invalid("key", "The private key does not fit the algorithm \(algorithm.rawValue).")
        }
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
        material = .secret(SymmetricKey(data: secret))
    }

    /// The signature in its JWS form: ECDSA as the fixed-length R ‖ S (RFC 7518 §3.4).
    func signature(for input: [UInt8]) throws(CacheError) -> [UInt8] {
        do {
            switch material {
            case .secret(let key): return Self.code(of: input, algorithm, key)
            case .rsa(let key): return try Self.signature(of: input, algorithm, key)
            case .p256(let key): return Array(try key.signature(for: input).rawRepresentation)
            case .p384(let key): return Array(try key.signature(for: input).rawRepresentation)
            case .p521(let key): return Array(try key.signature(for: input).rawRepresentation)
            case .ed25519(let key): return Array(try key.signature(for: input))
            }
        } catch {
            throw CacheError(.internal, "The token could not be signed.")
        }
    }

    /// The public half of a key pair; an HMAC secret is its own counterpart.
    var publicMaterial: VerificationKey.Material {
        switch material {
        case .secret(let key): .secret(key)
        case .rsa(let key): .rsa(key.publicKey)
        case .p256(let key): .p256(key.publicKey)
        case .p384(let key): .p384(key.publicKey)
        case .p521(let key): .p521(key.publicKey)
        case .ed25519(let key): .ed25519(key.publicKey)
        }
    }

    /// The HMAC of `input`.
    static func code(of input: [UInt8], _ algorithm: TokenAlgorithm, _ key: SymmetricKey) -> [UInt8] {
        switch algorithm {
        case .hs384: Array(HMAC<SHA384>.authenticationCode(for: input, using: key))
        case .hs512: Array(HMAC<SHA512>.authenticationCode(for: input, using: key))
        default: Array(HMAC<SHA256>.authenticationCode(for: input, using: key))
        }
    }

    /// An RSA signature: RSASSA-PKCS1-v1_5 (RFC 7518 §3.3) or RSASSA-PSS with a salt as long as the hash (§3.5).
    private static func signature(
        of input: [UInt8], _ algorithm: TokenAlgorithm, _ key: _RSA.Signing.PrivateKey
    ) throws -> [UInt8] {
        let signature =
            switch algorithm {
            case .rs384: try key.signature(for: SHA384.hash(data: input), padding: .insecurePKCS1v1_5)
            case .rs512: try key.signature(for: SHA512.hash(data: input), padding: .insecurePKCS1v1_5)
            case .ps256: try key.signature(for: SHA256.hash(data: input), padding: .PSS)
            case .ps384: try key.signature(for: SHA384.hash(data: input), padding: .PSS)
            case .ps512: try key.signature(for: SHA512.hash(data: input), padding: .PSS)
            default: try key.signature(for: SHA256.hash(data: input), padding: .insecurePKCS1v1_5)
            }
        return Array(signature.rawRepresentation)
    }

    /// An Ed25519 key from PKCS #8 without attributes (RFC 8410 §7): a constant prefix and the 32 bytes of the seed.
    private static func ed25519(_ der: [UInt8]) throws -> Curve25519.Signing.PrivateKey {
        let prefix: [UInt8] = [
            0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
        ]
        guard der.starts(with: prefix), der.count == prefix.count + 32 else {
            throw CryptoKitError.incorrectKeySize
        }
        return try Curve25519.Signing.PrivateKey(rawRepresentation: der[prefix.count...])
    }
}
