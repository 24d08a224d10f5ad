import COpenSSL

/// A new key pair in the text forms that OpenSSL writes.
package struct TestKey: Sendable {
    package let pkcs8, traditional, publicPEM: String
    /// `RSA PUBLIC KEY`; not usable for other types.
    package let pkcs1Public: String

    package static func rsa(bits: Int32 = 2048) -> TestKey {
        TestKey("RSA") { EVP_PKEY_CTX_set_rsa_keygen_bits($0, bits) }
    }

    /// `curve`: a name such as P-256.
    package static func ec(_ curve: String) -> TestKey { TestKey("EC") { EVP_PKEY_CTX_set_group_name($0, curve) } }

    /// A key without parameters: ED25519, X25519.
    package init(_ type: String) { self.init(type) { _ in 1 } }

    private init(_ type: String, _ configure: (OpaquePointer?) -> Int32) {
        let context = EVP_PKEY_CTX_new_from_name(nil, type, nil)
        var key: OpaquePointer?
        precondition(EVP_PKEY_keygen_init(context) == 1 && configure(context) == 1)
        precondition(EVP_PKEY_generate(context, &key) == 1)
        EVP_PKEY_CTX_free(context)
        defer { EVP_PKEY_free(key) }
        pkcs8 = Self.text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        traditional = Self.text { PEM_write_bio_PrivateKey_traditional($0, key, nil, nil, 0, nil, nil) }
        publicPEM = Self.text { PEM_write_bio_PUBKEY($0, key) }
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = type == "RSA" ? i2d_PublicKey(key, &bytes) : 0
        pkcs1Public = Self.text { PEM_write_bio($0, "RSA PUBLIC KEY", "", bytes, Int(count)) }
        CRYPTO_free(bytes, nil, 0)
    }

    private static func text(_ write: (OpaquePointer?) -> Int32) -> String {
        let file = BIO_new(BIO_s_mem())
        defer { BIO_free(file) }
        _ = write(file)
        var bytes = [UInt8](repeating: 0, count: 16 * 1024)
        let count = BIO_read(file, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(max(count, 0))), as: UTF8.self)
    }
}
