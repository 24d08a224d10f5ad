import CacheCore

/// Percent-encoding of all bytes that are not unreserved (RFC 3986 §2.3), with upper-case digits.
package enum URIEncoding {
    /// Encodes a text.
    static func encode(_ text: some StringProtocol) -> String { encode(text.utf8) }

    /// Encodes bytes, except unreserved characters and those of `kept`.
    package static func encode(_ bytes: some Sequence<UInt8>, keeping kept: String = "") -> String {
        var text: [UInt8] = []
        for byte in bytes {
            if isUnreserved(byte) || kept.utf8.contains(byte) {
                text.append(byte)
            } else {
                text.append(UInt8(ascii: "%"))
                text += byte.hexDigits.uppercased().utf8
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The path with each segment decoded once and encoded again. `/` and `%2F` remain distinct, and an encoded `.` or
    /// `..` segment remains encoded, because it would change the path otherwise.
    static func reencoded(path: String) -> String {
        path.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            let encoded = encode(PercentEncoding.decoded(segment))
            return encoded == "." || encoded == ".." ? String(segment) : encoded
        }.joined(separator: "/")
    }

    /// A parameter of a query, decoded once and encoded again. `+` means a space, as in forms.
    static func reencoded(parameter: some StringProtocol) -> String {
        encode(PercentEncoding.decoded(String(parameter.map { $0 == "+" ? " " : $0 })))
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        FieldText.isLetter(byte) || FieldText.isDigit(byte) || "-._~".utf8.contains(byte)
    }
}
