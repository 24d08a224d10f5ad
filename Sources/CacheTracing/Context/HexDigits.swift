/// Lower-case hexadecimal digits, the notation of identifiers in `traceparent` and in OTLP's JSON mapping.
enum HexDigits {
    /// The number of at most 16 digits; nil if a byte is not a lower-case hexadecimal digit (`HEXDIGLC`).
    static func parse(_ digits: some Sequence<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for byte in digits {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    /// The last `count` digits of `number`, with leading zeros.
    static func text(_ number: UInt64, digits count: Int = 16) -> String {
        String(unsafeUninitializedCapacity: count) { text in
            for index in 0..<count {
                let digit = UInt8(truncatingIfNeeded: number >> (4 * UInt64(count - 1 - index))) & 15
                text.initializeElement(at: index, to: digit < 10 ? 48 + digit : 87 + digit)
            }
            return count
        }
    }
}
