import CCryptography
import COpenSSL

/// A hash function.
package enum HashFunction: Int, Sendable, CaseIterable {
    case md5, sha256, sha384, sha512

    private static let names = ["MD5", "SHA256", "SHA384", "SHA512"]
    // Fetched once, because a search of the providers takes longer than a short message; never changed.
    nonisolated(unsafe) private static let fetched = names.map { EVP_MD_fetch(nil, $0, nil) }
    nonisolated(unsafe) private static let hmac = EVP_MAC_fetch(nil, "HMAC", nil)

    /// Nil if no provider has it, such as MD5 in a FIPS installation.
    var algorithm: OpaquePointer? { Self.fetched[rawValue] }

    /// The length of the digest in bytes.
    package var byteCount: Int { [16, 32, 48, 64][rawValue] }

    /// The digest of the bytes.
    package func digest(of bytes: some Sequence<UInt8>) -> [UInt8] {
        let bytes = Array(bytes)
        var digest = [UInt8](repeating: 0, count: byteCount)
        require(EVP_Digest(bytes, bytes.count, &digest, nil, algorithm, nil))
        return digest
    }

    /// The HMAC of the bytes.
    package func code(of bytes: some Sequence<UInt8>, _ key: SymmetricKey) -> [UInt8] {
        Array(bytes).withUnsafeBytes { code(of: $0, after: [], key) }
    }

    /// The HMAC of `prefix` and the bytes.
    package func code(of bytes: UnsafeRawBufferPointer, after prefix: [UInt8], _ key: SymmetricKey) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: byteCount)
        key.withUnsafeBytes { key in
            require(
                larder_hmac(
                    Self.hmac, Self.names[rawValue], key.baseAddress, key.count, prefix, prefix.count,
                    bytes.baseAddress, bytes.count, &code, code.count))
        }
        return code
    }

    /// A key as long as the digest, derived from another one without a salt (HKDF, RFC 5869).
    package func derivedKey(from key: SymmetricKey, for use: String) -> SymmetricKey {
        let salt = SymmetricKey(Array(repeating: 0, count: byteCount))
        let extracted = SymmetricKey(key.withUnsafeBytes { code(of: $0, after: [], salt) })
        return SymmetricKey(code(of: Array(use.utf8) + [1], extracted))
    }
}

/// A hash of bytes that arrive in parts.
// Unchecked because of the pointer: the state belongs to no thread, and its owner makes one call at a time.
package final class RunningHash: @unchecked Sendable {
    private let state = EVP_MD_CTX_new()
    private let function: HashFunction

    /// Nil if no provider has the function.
    package init?(_ function: HashFunction) {
        self.function = function
        guard EVP_DigestInit_ex2(state, function.algorithm, nil) == 1 else { return nil }
    }

    deinit { EVP_MD_CTX_free(state) }

    package func update(_ bytes: UnsafeRawBufferPointer) {
        require(EVP_DigestUpdate(state, bytes.baseAddress, bytes.count))
    }

    /// The digest of the bytes until now; more can follow.
    package var digest: [UInt8] {
        let copy = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(copy) }
        var digest = [UInt8](repeating: 0, count: function.byteCount)
        require(EVP_MD_CTX_copy_ex(copy, state) & EVP_DigestFinal_ex(copy, &digest, nil))
        return digest
    }
}

/// Ends the process if libcrypto fails: it has no memory, or no provider with the algorithm. Zeros in place of a code or
/// digest would be a security risk.
private func require(_ status: Int32) { precondition(status == 1, "libcrypto failed.") }
