extension [UInt8] {
    /// Equality without a diff: a failed expectation does not print millions of bytes.
    package func isSame(as other: [UInt8]) -> Bool { self == other }
}
