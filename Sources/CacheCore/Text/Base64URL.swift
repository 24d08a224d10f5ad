/// Base64 with the URL-safe alphabet, without padding (RFC 4648 §5, RFC 7515 §2).
package enum Base64URL {
    /// Encodes bytes: 4 characters for 3 bytes, without padding.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var (buffer, bits): (UInt32, UInt32) = (0, 0)
        for byte in bytes {
            buffer = buffer << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(character(UInt8(truncatingIfNeeded: buffer >> bits) & 63))
            }
        }
        if bits > 0 { text.append(character(UInt8(truncatingIfNeeded: buffer << (6 - bits)) & 63)) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes a text. Nil for another character, padding, an impossible length, or bits behind the last byte that are
    /// not zero; so exactly one text exists for given bytes.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (buffer, bits): (UInt32, UInt32) = (0, 0)
        for character in text.utf8 {
            guard let value = value(of: character) else { return nil }
            buffer = (buffer << 6 | UInt32(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
            }
        }
        guard bits < 6, buffer & (1 << bits - 1) == 0 else { return nil }
        return bytes
    }

    /// Decodes a text; other characters and the bits behind the last byte are ignored.
    package static func decodeLeniently(_ text: some Sequence<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var (buffer, bits): (UInt32, UInt32) = (0, 0)
        for value in text.lazy.compactMap(Self.value) {
            buffer = (buffer << 6 | UInt32(value)) & 0xFFFF
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> bits))
            }
        }
        return bytes
    }

    /// The character of a 6-bit value.
    private static func character(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: value + UInt8(ascii: "A")
        case 26..<52: value - 26 + UInt8(ascii: "a")
        case 52..<62: value - 52 + UInt8(ascii: "0")
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }

    /// The 6-bit value of a character; nil if it is not in the alphabet.
    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        default: nil
        }
    }
}
