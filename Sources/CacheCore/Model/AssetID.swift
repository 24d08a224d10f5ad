/// The identifier of an asset: the first 128 bits of the SHA-256 of its key, as 32 lower-case hexadecimal digits.
package struct AssetID: Hashable, Comparable, Sendable, TextCodable {
    package static let expectation = "An asset ID with 32 hexadecimal digits is expected here."
    /// The first 64 bits.
    package let high: UInt64
    /// The last 64 bits.
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Nil unless `text` has exactly 32 lower-case hexadecimal digits.
    package init?(_ text: some StringProtocol) {
        let isDigit: (UInt8) -> Bool = { (48...57).contains($0) || (97...102).contains($0) }
        guard text.utf8.count == 32, text.utf8.allSatisfy(isDigit),
            let high = UInt64(text.prefix(16), radix: 16), let low = UInt64(text.suffix(16), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    package static func < (left: AssetID, right: AssetID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}

extension AssetID {
    package var description: String {
        String(unsafeUninitializedCapacity: 32) { digits in
            for index in 0..<32 {
                let word = index < 16 ? high : low
                let digit = UInt8(truncatingIfNeeded: word >> (60 - 4 * UInt64(index % 16))) & 0xF
                digits[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
            }
            return 32
        }
    }
}
