import COpenSSL
import Crypto

/// AES-256 in counter mode (NIST SP 800-38A §6.5) with OpenSSL, which uses all instructions of the processor and writes
/// its result in place. swift-crypto returns new `Data` for each call.
struct CounterMode: ~Copyable {
    /// Nil if OpenSSL has refused.
    private let context: OpaquePointer?

    /// The stream that begins with the counter of `nonce` and `block`, 64 bits each.
    init(_ key: SymmetricKey, nonce: UInt64, block: UInt64) {
        let context = EVP_CIPHER_CTX_new()
        let status =
            context == nil
            ? 0
            : [nonce.bigEndian, block.bigEndian].withUnsafeBytes { counter in
                key.withUnsafeBytes { key in
                    EVP_EncryptInit_ex(
                        context, EVP_aes_256_ctr(), nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                        counter.baseAddress?.assumingMemoryBound(to: UInt8.self))
                }
            }
        if status != 1 { EVP_CIPHER_CTX_free(context) }
        self.context = status == 1 ? context : nil
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// Encrypts or decrypts `bytes` into `target`; it may be the same memory. `lead`: the number of bytes of the
    /// stream before them. Returns false if OpenSSL refused.
    func apply(
        _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, skipping lead: Int
    ) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) { skipped in
            skipped.initializeMemory(as: UInt8.self, repeating: 0)
            let start = UnsafeMutableRawBufferPointer(rebasing: skipped[..<lead])
            return update(UnsafeRawBufferPointer(start), into: start) && update(bytes, into: target)
        }
    }

    private func update(_ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> Bool {
        guard let context else { return false }
        guard !bytes.isEmpty else { return true }
        var count: Int32 = 0
        let status = EVP_EncryptUpdate(
            context, target.baseAddress?.assumingMemoryBound(to: UInt8.self), &count,
            bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(bytes.count))
        return status == 1 && Int(count) == bytes.count
    }
}
