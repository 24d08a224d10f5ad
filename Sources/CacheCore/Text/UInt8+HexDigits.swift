extension Sequence<UInt8> {
    /// Two lower-case hexadecimal digits for each byte.
    package var hexDigits: String { map(\.hexDigits).joined() }
}

extension UInt8 {
    /// Two lower-case hexadecimal digits.
    package var hexDigits: String { (self < 16 ? "0" : "") + String(self, radix: 16) }
}
