import COpenSSL

/// Comparison of secrets in constant time.
package enum SecureCompare {
    /// Whether both are equal. The time depends on the lengths only, not on the position of the first difference.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}
