/// Percent-encoding and its normal form (RFC 3986 §2.1, §6.2.2).
package enum PercentEncoding {
    /// A path in normal form: unreserved characters plain, hexadecimal digits upper case, every byte that may not stand
    /// in a path encoded; `/` stays `/`, and `%2F` stays `%2F`. Nil where a `%` has no two digits behind it.
    package static func normalized(path: String) -> String? {
        normalized(path.utf8, keeping: pathBytes)
    }

    /// A query in normal form. A `%` that begins nothing is kept as `%25`, since such queries are about.
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

    /// `query` as it is, but for bytes that may not stand in a request's target: those are encoded.
    package static func sendable(query: String) -> String {
        var text: [UInt8] = []
        for byte in query.utf8 {
            append(byte, to: &text, plain: byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#"))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes that `text` stands for; a `%` that begins nothing stands for itself.
    package static func decoded(_ text: some StringProtocol) -> [UInt8] {
        var decoded: [UInt8] = []
        var bytes = Array(text.utf8)[...]
        while let byte = bytes.popFirst() {
            decoded.append(byte == UInt8(ascii: "%") ? takeEscape(&bytes) ?? byte : byte)
        }
        return decoded
    }

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

    /// Takes the two digits behind a `%`; takes nothing where they are not there.
    private static func takeEscape(_ bytes: inout ArraySlice<UInt8>) -> UInt8? {
        var rest = bytes
        guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else { return nil }
        bytes = rest
        return high << 4 | low
    }

    /// Of a hexadecimal digit.
    private static func value(_ digit: UInt8) -> UInt8? {
        if FieldText.isDigit(digit) { return digit - 48 }
        return (97...102).contains(digit | 0x20) ? (digit | 0x20) - 87 : nil
    }

    private static func append(_ byte: UInt8, to text: inout [UInt8], plain: Bool) {
        if plain { return text.append(byte) }
        text.append(UInt8(ascii: "%"))
        text.append(hexadecimal(byte >> 4))
        text.append(hexadecimal(byte & 15))
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 { digit < 10 ? 48 + digit : 55 + digit }

    private static let unreservedBytes = table { byte in
        [0x2D, 0x2E, 0x5F, 0x7E].contains(byte) || FieldText.isDigit(byte) || FieldText.isLetter(byte)
    }

    /// `pchar` and `/` (§3.3).
    private static let pathBytes = table { unreservedBytes[Int($0)] || "!$&'()*+,;=:@/".utf8.contains($0) }
    private static let queryBytes = table { pathBytes[Int($0)] || $0 == UInt8(ascii: "?") }

    /// Of each byte whether it is one of them.
    private static func table(_ isPlain: (UInt8) -> Bool) -> [Bool] { (0...UInt8.max).map(isPlain) }
}
