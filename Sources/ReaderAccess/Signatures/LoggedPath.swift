import CacheCore

/// Paths of requests in logs, traces and problem documents: without the tokens of signed URLs.
package enum LoggedPath {
    /// The text in place of a token.
    package static let mask = "•••"
    /// The length from which a segment can be a token.
    private static let leastLength = 32

    /// The path with ``mask`` in place of each segment that is, or may be, the token of a signed URL.
    ///
    /// These are segments with the structure of a token, a `URISigningPackage`, and outside of content each long segment
    /// behind a segment `t`, in any spelling: a client or a proxy may have moved or encoded the token.
    ///
    /// - Parameter path: A path without its query, in origin form.
    package static func masked(_ path: String) -> String {
        guard hasLongRun(path) else { return path }
        let isContent = path.utf8.starts(with: "/o/".utf8)
        var isAnnounced = false
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            let text = String(decoding: PercentEncoding.decoded(segment), as: UTF8.self)
            var isSecret = FieldText.lowered(text[...]).contains(name)
            for part in parts(of: segment) where !part.isEmpty {
                isSecret =
                    isSecret || isAnnounced && !isContent && part.count >= leastLength
                    || holdsToken(part)
                isAnnounced = announcesToken(part)
            }
            return isSecret ? mask : String(segment)
        }
        return segments.joined(separator: "/")
    }

    private static let name = FieldText.lowered(SigningPackage.name[...])

    /// Whether a part contains a token of a path or a JSON Web Token, as a whole or behind another mark.
    private static func holdsToken(_ part: ArraySlice<UInt8>) -> Bool {
        part.split(whereSeparator: { !FieldText.isBase64URL($0) && $0 != UInt8(ascii: ".") }).contains { word in
            let text = String(decoding: word, as: UTF8.self)
            let rests = text.indices.prefix(4).filter { ".-_".contains(text[$0]) }.map {
                text[text.index(after: $0)...]
            }
            return ([text[...]] + rests).contains { isWebToken($0) || SignedText.parse(pathToken: String($0)) != nil }
        }
    }

    /// Whether the text has the structure of a JSON Web Token: three parts, of which the first is a JSON object.
    private static func isWebToken(_ text: Substring) -> Bool {
        text.hasPrefix("eyJ") && text.utf8.count(where: { $0 == UInt8(ascii: ".") }) == 2
    }

    /// The parts of a path between slashes and backslashes, after percent-decoding, also a repeated one.
    static func parts(of text: some StringProtocol) -> [ArraySlice<UInt8>] {
        let decoded = PercentEncoding.decoded(String(decoding: PercentEncoding.decoded(text), as: UTF8.self))
        return decoded.split(omittingEmptySubsequences: false) { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    }

    /// Whether a token may follow: the part is `t`, in either case, with or without parameters.
    static func announcesToken(_ part: ArraySlice<UInt8>) -> Bool {
        let name = part.prefix { $0 != UInt8(ascii: ";") }
        return name.count == 1 && name.first.map { $0 | 0x20 == UInt8(ascii: "t") } ?? false
    }

    /// Whether a token can be in the path at all: it has a long run of characters of Base64url. Escapes are counted as
    /// such characters.
    private static func hasLongRun(_ path: String) -> Bool {
        var length = 0
        for byte in path.utf8 {
            length = FieldText.isBase64URL(byte) || byte == UInt8(ascii: "%") ? length + 1 : 0
            if length >= leastLength { return true }
        }
        return false
    }
}
