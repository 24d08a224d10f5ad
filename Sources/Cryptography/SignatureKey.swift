import CCryptography
import COpenSSL

/// A public key, or a key pair, for the signatures of JSON Web Signatures. It has no description.
package final class SignatureKey: Sendable {
    /// The supported types, by their names in libcrypto.
    package enum Kind: String, Sendable, CaseIterable {
        case rsa = "RSA", p256 = "prime256v1", p384 = "secp384r1", p521 = "secp521r1", ed25519 = "ED25519"

        /// The length of a coordinate, and of R and S in an ECDSA signature (RFC 7518 §3.4); nil for other types.
        package var coordinateLength: Int? { [.p256: 32, .p384: 48, .p521: 66][self] }
    }

    /// The bits of RSA keys (RFC 7518 §3.3). A longer key would make each verification slow.
    private static let rsaBits: ClosedRange<Int32> = 2048...8192

    package let kind: Kind
    // Never changed. libcrypto synchronizes its own counters and caches in it.
    nonisolated(unsafe) private let key: OpaquePointer

    /// Takes the ownership of `key`. Nil unless its type and size are supported.
    private init?(_ key: OpaquePointer?) {
        defer { ERR_clear_error() }
        guard let key, let kind = Kind.allCases.first(where: { larder_key_is(key, $0.rawValue) == 1 }),
            kind != .rsa || Self.rsaBits.contains(EVP_PKEY_get_bits(key))
        else {
            EVP_PKEY_free(key)
            return nil
        }
        (self.kind, self.key) = (kind, key)
    }

    deinit { EVP_PKEY_free(key) }
}

// MARK: Forms of keys

extension SignatureKey {
    /// The first unencrypted private key of a PEM text: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC). Nil if there is none, or
    /// its private half is that of another key.
    package convenience init?(privatePEM text: String) {
        self.init(Self.read(text, isPrivate: true))
        guard larder_is_pair(key) == 1 else { return nil }
    }

    /// The first public key of a PEM text: `PUBLIC KEY` (RFC 5280) or `RSA PUBLIC KEY` (RFC 8017).
    package convenience init?(publicPEM text: String) { self.init(Self.read(text, isPrivate: false)) }

    /// An RSA public key of big-endian numbers.
    package convenience init?(rsaModulus modulus: [UInt8], exponent: [UInt8]) {
        self.init(larder_rsa_public_key(modulus, Int32(modulus.count), exponent, Int32(exponent.count)))
    }

    /// The public key of a point with both coordinates in their full length; nil if the point is not on the curve.
    package convenience init?(_ curve: Kind, x: [UInt8], y: [UInt8]) {
        let point = [0x04] + x + y
        self.init(larder_ec_public_key(curve.rawValue, point, point.count))
    }

    package convenience init?(ed25519 bytes: [UInt8]) {
        self.init(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count))
    }

    /// Reads a PEM text (RFC 7468) of at most 64 KiB. Other blocks and the text around them are skipped.
    private static func read(_ text: String, isPrivate: Bool) -> OpaquePointer? {
        let text = Array(text.utf8)
        return text.count <= 64 * 1024 ? larder_pem_key(text, Int32(text.count), isPrivate ? 1 : 0) : nil
    }
}

// MARK: Signatures

extension SignatureKey {
    /// The signature in its JWS form; nil if libcrypto refuses. RSA: RSASSA-PKCS1-v1_5, or RSASSA-PSS with a salt as long
    /// as the hash. ECDSA: R ‖ S. Ed25519 has no `hash`.
    package func signature(of input: [UInt8], _ hash: HashFunction?, isPSS: Bool) -> [UInt8]? {
        var length = Int(EVP_PKEY_get_size(key))
        var signature = [UInt8](repeating: 0, count: length)
        let pss: Int32 = isPSS ? 1 : 0
        guard larder_sign(key, hash?.algorithm, pss, input, input.count, &signature, &length) == 1 else { return nil }
        guard let size = kind.coordinateLength else { return Array(signature.prefix(length)) }
        var fixed = [UInt8](repeating: 0, count: 2 * size)
        return larder_ecdsa_fixed(signature, length, &fixed, Int32(size)) == 1 ? fixed : nil
    }

    /// Whether a signature in its JWS form is valid. One of another length than RSA modulus or R ‖ S is invalid, also in
    /// ASN.1.
    package func isValid(_ signature: [UInt8], of input: [UInt8], _ hash: HashFunction?, isPSS: Bool) -> Bool {
        var signature = signature
        if let size = kind.coordinateLength {
            guard signature.count == 2 * size else { return false }
            var asn1 = [UInt8](repeating: 0, count: 2 * size + 16)
            let length = larder_ecdsa_asn1(signature, Int32(size), &asn1)
            signature = Array(asn1.prefix(max(Int(length), 0)))
        } else if signature.count != Int(EVP_PKEY_get_size(key)) {
            return false
        }
        let (algorithm, pss): (OpaquePointer?, Int32) = (hash?.algorithm, isPSS ? 1 : 0)
        return larder_verify(key, algorithm, pss, input, input.count, signature, signature.count) == 1
    }
}
