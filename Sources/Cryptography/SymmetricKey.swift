import CCryptography
import COpenSSL

/// The bytes of a secret, which are overwritten when the last reference is released. It has no description.
package final class SymmetricKey: Sendable {
    // Written by the initializer only.
    nonisolated(unsafe) private let bytes: UnsafeMutableRawBufferPointer

    package init(_ secret: [UInt8]) {
        bytes = .allocate(byteCount: secret.count, alignment: 16)
        bytes.copyBytes(from: secret)
    }

    deinit {
        OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        bytes.deallocate()
    }

    /// The length in bytes.
    package var count: Int { bytes.count }

    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(bytes)) }
    }

    /// Random bytes for keys and nonces.
    package static func randomBytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        precondition(RAND_priv_bytes(&bytes, Int32(count)) == 1, "libcrypto has no random numbers.")
        return bytes
    }
}

// MARK: Encryption with AES-256

extension SymmetricKey {
    private static let (nonceLength, tagLength) = (12, 16)
    // Fetched once, because a search of the providers takes longer than a short message; never changed.
    nonisolated(unsafe) private static let galois = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)
    nonisolated(unsafe) private static let counter = EVP_CIPHER_fetch(nil, "AES-256-CTR", nil)

    /// Encrypts with GCM (NIST SP 800-38D): a random nonce, the ciphertext and the tag. `context` is authenticated, and not
    /// part of the result. Nil if the key has not 32 bytes.
    package func sealed(_ plain: [UInt8], authenticating context: [UInt8] = []) -> [UInt8]? {
        let nonce = Self.randomBytes(Self.nonceLength)
        var tag = [UInt8](repeating: 0, count: Self.tagLength)
        return crypt(plain, nonce, &tag, context, isSealing: true).map { nonce + $0 + tag }
    }

    /// Decrypts the result of `sealed`; nil if key or context are others, or the bytes are damaged.
    package func opened(_ sealed: [UInt8], authenticating context: [UInt8] = []) -> [UInt8]? {
        guard sealed.count >= Self.nonceLength + Self.tagLength else { return nil }
        var tag = Array(sealed.suffix(Self.tagLength))
        let bytes = Array(sealed.dropFirst(Self.nonceLength).dropLast(Self.tagLength))
        return crypt(bytes, Array(sealed.prefix(Self.nonceLength)), &tag, context, isSealing: false)
    }

    private func crypt(
        _ bytes: [UInt8], _ nonce: [UInt8], _ tag: inout [UInt8], _ context: [UInt8], isSealing: Bool
    ) -> [UInt8]? {
        // libcrypto may write a block behind the end.
        var result = [UInt8](repeating: 0, count: bytes.count + 16)
        guard count == 32, let length = Int32(exactly: bytes.count) else { return nil }
        let status = larder_gcm(
            Self.galois, isSealing ? 1 : 0, self.bytes.baseAddress, nonce, context, Int32(context.count), bytes,
            length, &result, &tag)
        return status == 1 ? Array(result.prefix(bytes.count)) : nil
    }

    /// Encrypts or decrypts with the counter mode (NIST SP 800-38A §6.5) into `target`, which may be the same memory. The
    /// counter begins with `nonce` and `block`, 64 bits each; `lead` is the number of bytes of the block before `bytes`.
    /// Returns false if the key has not 32 bytes.
    package func applyCounterMode(
        _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, nonce: UInt64, block: UInt64,
        skipping lead: Int
    ) -> Bool {
        count == 32
            && larder_ctr(
                Self.counter, self.bytes.baseAddress, [nonce.bigEndian, block.bigEndian], Int32(lead),
                bytes.baseAddress, Int32(bytes.count), target.baseAddress) == 1
    }
}
