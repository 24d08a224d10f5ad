extension Sequence<UInt8> {
    /// Two lower-case hexadecimal digits for each byte.
    package var hexDigits: String { map(\.hexDigits).joined() }
}

extension UInt8 {
    /// Two lower-case hexadecimal digits.
    package var hexDigits: String { (self < 16 ? "0" : "") + String(self, radix: 16) }
}

extension [UInt8] {
    /// The bytes of an even number of hexadecimal digits; nil for any other text.
    package init?(hexDigits text: some StringProtocol) {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
