extension [UInt8] {
    /// Equality by another name: an expectation that fails shows no diff of millions of bytes.
    package func isSame(as other: [UInt8]) -> Bool { self == other }
}
