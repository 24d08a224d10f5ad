/// Percent-encoding and its normal form (RFC 3986 §2.1, §6.2.2).
package enum PercentEncoding {
    /// The normal form of a path: unreserved characters unencoded, hexadecimal digits in upper case, and all bytes that
    /// a path must not contain encoded. `/` and `%2F` remain distinct. Nil if a `%` is not followed by two hexadecimal
    /// digits.
    package static func normalized(path: String) -> String? {
        normalized(path.utf8, keeping: pathBytes)
    }

    /// Whether the byte stands unencoded in the normal form of a path. `%` does not.
    static func isPlain(inPath byte: UInt8) -> Bool { pathBytes[Int(byte)] }

    /// The normal form of a query. An incomplete escape is tolerated, because such queries exist: its `%` becomes
    /// `%25`.
    package static func normalized(query: String) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(query.utf8.count)
        var bytes = Array(query.utf8)[...]
        while let byte = bytes.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                append(byte, to: &text, plain: queryBytes[Int(byte)])
                continue
            }
            if let value = takeEscape(&bytes) {
                append(value, to: &text, plain: unreservedBytes[Int(value)])
            } else {
                append(byte, to: &text, plain: false)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The query unchanged, except that bytes invalid in a request target are encoded.
    package static func sendable(query: String) -> String {
        var text: [UInt8] = []
        for byte in query.utf8 {
            append(byte, to: &text, plain: byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#"))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The path as a part of a URL: all bytes that a path must not contain are encoded (RFC 3986 §3.3), and escapes stay
    /// as they are. The `%` of an incomplete escape becomes `%25`.
    package static func valid(path: String) -> String { valid(path.utf8, keeping: pathBytes) }

    /// The query as a part of a URL (RFC 3986 §3.4), like ``valid(path:)``.
    package static func valid(query: String) -> String { valid(query.utf8, keeping: queryBytes) }

    private static func valid(_ source: String.UTF8View, keeping plain: [Bool]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(source.count)
        var bytes = Array(source)[...]
        while let byte = bytes.popFirst() {
            var rest = bytes
            let isEscape = byte == UInt8(ascii: "%") && takeEscape(&rest) != nil
            append(byte, to: &text, plain: isEscape || plain[Int(byte)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// A plain name or path as a part of a URL: all bytes that a path must not contain are encoded, `%` too.
    package static func encoded(name: String) -> String {
        var text: [UInt8] = []
        for byte in name.utf8 { append(byte, to: &text, plain: pathBytes[Int(byte)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes with all of them encoded that are neither unreserved (RFC 3986 §2.3) nor among `kept`, as in a path
    /// segment or a query value.
    package static func encoded(_ bytes: some Sequence<UInt8>, keeping kept: StaticString = "") -> String {
        var text: [UInt8] = []
        kept.withUTF8Buffer { kept in
            for byte in bytes { append(byte, to: &text, plain: unreservedBytes[Int(byte)] || kept.contains(byte)) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// A path segment or a query value, with all bytes encoded that are not unreserved.
    package static func encoded(_ text: some StringProtocol) -> String { encoded(text.utf8) }

    /// The decoded bytes of `text`; the `%` of an incomplete escape is kept.
    package static func decoded(_ text: some StringProtocol) -> [UInt8] {
        var decoded: [UInt8] = []
        var bytes = Array(text.utf8)[...]
        while let byte = bytes.popFirst() {
            decoded.append(byte == UInt8(ascii: "%") ? takeEscape(&bytes) ?? byte : byte)
        }
        return decoded
    }

    /// The normal form of a text where the bytes of `plain` may stand unencoded; nil if an escape is incomplete.
    private static func normalized(_ source: String.UTF8View, keeping plain: [Bool]) -> String? {
        var text: [UInt8] = []
        text.reserveCapacity(source.count)
        var bytes = Array(source)[...]
        while let byte = bytes.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                append(byte, to: &text, plain: plain[Int(byte)])
                continue
            }
            guard let value = takeEscape(&bytes) else { return nil }
            append(value, to: &text, plain: unreservedBytes[Int(value)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Consumes the two digits after a `%` and returns their value; nil if they are missing, without consuming
    /// anything.
    private static func takeEscape(_ bytes: inout ArraySlice<UInt8>) -> UInt8? {
        var rest = bytes
        guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else { return nil }
        bytes = rest
        return high << 4 | low
    }

    /// The value of a hexadecimal digit; nil for other bytes.
    private static func value(_ digit: UInt8) -> UInt8? {
        if FieldText.isDigit(digit) { return digit - 48 }
        return (97...102).contains(digit | 0x20) ? (digit | 0x20) - 87 : nil
    }

    /// Appends a byte unchanged or as an escape.
    private static func append(_ byte: UInt8, to text: inout [UInt8], plain: Bool) {
        if plain { return text.append(byte) }
        text.append(UInt8(ascii: "%"))
        text.append(hexadecimal(byte >> 4))
        text.append(hexadecimal(byte & 15))
    }

    /// The digit 0–15 as an ASCII character, in upper case.
    private static func hexadecimal(_ digit: UInt8) -> UInt8 { digit < 10 ? 48 + digit : 55 + digit }

    /// `unreserved` (§2.3).
    private static let unreservedBytes = table { byte in
        [0x2D, 0x2E, 0x5F, 0x7E].contains(byte) || FieldText.isDigit(byte) || FieldText.isLetter(byte)
    }

    /// `pchar` and `/` (§3.3).
    private static let pathBytes = table { unreservedBytes[Int($0)] || "!$&'()*+,;=:@/".utf8.contains($0) }
    /// The bytes of a query: those of a path, and `?` (§3.4).
    private static let queryBytes = table { pathBytes[Int($0)] || $0 == UInt8(ascii: "?") }

    /// A lookup table with one element for each byte.
    private static func table(_ isPlain: (UInt8) -> Bool) -> [Bool] { (0...UInt8.max).map(isPlain) }
}
