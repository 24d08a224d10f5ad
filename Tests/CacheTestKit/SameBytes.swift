import Glibc

extension [UInt8] {
    /// Equality without a diff: a failed expectation does not print millions of bytes.
    package func isSame(as other: [UInt8]) -> Bool { self == other }
}

/// The comparison of the standard library takes seconds for the bytes of some tests without optimization.
package func == (lhs: [UInt8], rhs: [UInt8]) -> Bool {
    guard lhs.count == rhs.count, !lhs.isEmpty else { return lhs.count == rhs.count }
    return memcmp(lhs, rhs, lhs.count) == 0
}
