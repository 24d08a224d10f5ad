/// The identifier of a trace: 16 bytes, not all zero (W3C Trace Context §3.2.2.3).
package struct TraceID: Hashable, Sendable {
    /// The first 8 bytes.
    package let high: UInt64
    /// The last 8 bytes.
    package let low: UInt64

    /// Nil if both words are zero.
    package init?(high: UInt64, low: UInt64) {
        guard high | low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// Nil unless `text` has exactly 32 lower-case hexadecimal digits that are not all zero.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 32, let high = HexDigits.parse(text.utf8.prefix(16)),
            let low = HexDigits.parse(text.utf8.suffix(16))
        else { return nil }
        self.init(high: high, low: low)
    }

    /// The last 56 bits, random according to W3C Trace Context Level 2 §3.2.2.3.
    var randomness: UInt64 { low & TraceSampler.randomnessMask }
}

extension TraceID: CustomStringConvertible {
    /// 32 lower-case hexadecimal digits.
    package var description: String { HexDigits.text(high) + HexDigits.text(low) }
}

/// The identifier of a span: 8 bytes, not all zero (W3C Trace Context §3.2.2.4, there `parent-id`).
package struct SpanID: Hashable, Sendable {
    /// The 8 bytes.
    package let bits: UInt64

    /// Nil if `bits` is zero.
    package init?(_ bits: UInt64) {
        guard bits != 0 else { return nil }
        self.bits = bits
    }

    /// Nil unless `text` has exactly 16 lower-case hexadecimal digits that are not all zero.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 16, let bits = HexDigits.parse(text.utf8) else { return nil }
        self.init(bits)
    }
}

extension SpanID: CustomStringConvertible {
    /// 16 lower-case hexadecimal digits.
    package var description: String { HexDigits.text(bits) }
}
