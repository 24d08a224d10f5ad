/// Comparison of secrets in constant time.
package enum SecureCompare {
    /// Whether both are equal. The time depends on the lengths only, not on the position of the first difference.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for index in left.indices { difference |= left[index] ^ right[index] }
        return difference == 0
    }
}
