package import CacheCore
import Crypto
import CryptoExtras

/// A key that checks JSON Web Signatures, and the algorithms that it may be used with. It has no description.
///
/// The algorithms follow from the type of the key, never from a token: an RSA key verifies no HMAC, so that a token
/// signed with the public key as an HMAC secret is refused (RFC 8725 §2.1).
package struct VerificationKey: Sendable {
    enum Material: Sendable {
        case secret(SymmetricKey)
        case rsa(_RSA.Signing.PublicKey)
        case p256(P256.Signing.PublicKey)
        case p384(P384.Signing.PublicKey)
        case p521(P521.Signing.PublicKey)
        case ed25519(Curve25519.Signing.PublicKey)
    }

    /// The key identifier; nil if it has none.
    package let id: String?
    /// The algorithms that the key's type allows, narrowed by `alg` of the JWK.
    package let algorithms: Set<TokenAlgorithm>
    private let material: Material

    init(_ material: Material, id: String?, only algorithm: TokenAlgorithm? = nil) throws(CacheError) {
        let fitting: Set<TokenAlgorithm> =
            switch material {
            case .secret(let key):
                Set(TokenAlgorithm.allCases.filter { $0.leastSecretBytes.map { $0 * 8 <= key.bitCount } ?? false })
            case .rsa: [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]
            case .p256: [.es256]
            case .p384: [.es384]
            case .p521: [.es512]
            case .ed25519: [.edDSA]
            }
        algorithms = algorithm.map { fitting.intersection([$0]) } ?? fitting
        guard !algorithms.isEmpty else { throw .invalid("key", "The key is too short, or does not fit its algorithm.") }
        self.material = material
        self.id = id
    }

    /// Makes an HMAC key of at least 32 bytes. HS384 needs 48, HS512 64 (RFC 7518 §3.2).
    ///
    /// Throws `.invalidField("key")` if the secret is shorter.
    package init(secret: [UInt8], id: String? = nil) throws(CacheError) {
        try self.init(.secret(SymmetricKey(data: secret)), id: id)
    }

    /// Makes a key from a PEM public key: `PUBLIC KEY` (RFC 5280: RSA, P-256, P-384, P-521, Ed25519) or
    /// `RSA PUBLIC KEY` (RFC 8017).
    ///
    /// Throws `.invalidField("key")` if the text contains none.
    package init(pem: String, id: String? = nil) throws(CacheError) {
        guard let block = PEMText.block(of: ["PUBLIC KEY", "RSA PUBLIC KEY"], in: pem) else {
            throw .invalid("key", "The key is not a PEM public key.")
        }
        guard let material = Self.material(ofDER: block.der) else {
            throw .invalid("key", "The public key is neither RSA with 2048 bits, P-256, P-384, P-521 nor Ed25519.")
        }
        try self.init(material, id: id)
    }

    /// Whether the signature of `input` is valid. False for an algorithm that is not in ``algorithms``.
    func isValid(_ signature: [UInt8], of input: [UInt8], _ algorithm: TokenAlgorithm) -> Bool {
        guard algorithms.contains(algorithm) else { return false }
        switch material {
        case .secret(let key):
            return SecureCompare.areEqual(SigningKey.code(of: input, algorithm, key), signature)
        case .rsa(let key):
            return Self.isValid(signature, of: input, algorithm, key)
        // A signature of another length than R ‖ S is invalid, also in DER (RFC 7518 §3.4).
        case .p256(let key):
            guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: input)
        case .p384(let key):
            guard let signature = try? P384.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: input)
        case .p521(let key):
            guard let signature = try? P521.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: input)
        case .ed25519(let key):
            return signature.count == 64 && key.isValidSignature(signature, for: input)
        }
    }

    /// Whether an RSA signature is valid. Its length must be that of the modulus (RFC 8017 §8.1.2, §8.2.2).
    private static func isValid(
        _ signature: [UInt8], of input: [UInt8], _ algorithm: TokenAlgorithm, _ key: _RSA.Signing.PublicKey
    ) -> Bool {
        guard signature.count == (key.keySizeInBits + 7) / 8 else { return false }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: signature)
        switch algorithm {
        case .rs256: return key.isValidSignature(signature, for: SHA256.hash(data: input), padding: .insecurePKCS1v1_5)
        case .rs384: return key.isValidSignature(signature, for: SHA384.hash(data: input), padding: .insecurePKCS1v1_5)
        case .rs512: return key.isValidSignature(signature, for: SHA512.hash(data: input), padding: .insecurePKCS1v1_5)
        case .ps256: return key.isValidSignature(signature, for: SHA256.hash(data: input), padding: .PSS)
        case .ps384: return key.isValidSignature(signature, for: SHA384.hash(data: input), padding: .PSS)
        case .ps512: return key.isValidSignature(signature, for: SHA512.hash(data: input), padding: .PSS)
        default: return false
        }
    }

    /// The key of a DER public key; nil if it is of no supported type.
    private static func material(ofDER der: [UInt8]) -> Material? {
        // Each initializer fails on the object identifiers of the other types.
        if let key = try? P256.Signing.PublicKey(derRepresentation: der) { return .p256(key) }
        if let key = try? P384.Signing.PublicKey(derRepresentation: der) { return .p384(key) }
        if let key = try? P521.Signing.PublicKey(derRepresentation: der) { return .p521(key) }
        // SubjectPublicKeyInfo of Ed25519 is a constant prefix and the 32 bytes of the key (RFC 8410 §4).
        let prefix: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
        if der.starts(with: prefix) {
            return (try? Curve25519.Signing.PublicKey(rawRepresentation: der[prefix.count...])).map(Material.ed25519)
        }
        return rsa(try? _RSA.Signing.PublicKey(derRepresentation: der))
    }

    /// An RSA key of at most 8192 bits; a larger one would make each verification slow.
    static func rsa(_ key: _RSA.Signing.PublicKey?) -> Material? {
        guard let key, key.keySizeInBits <= 8192 else { return nil }
        return .rsa(key)
    }
}

extension SigningKey {
    /// The key that verifies this key's signatures: the public half of a pair, or the secret itself.
    package func verificationKey(id: String? = nil) throws(CacheError) -> VerificationKey {
        try VerificationKey(publicMaterial, id: id, only: algorithm)
    }
}
