import CacheCore

/// Numbers and text in playlists and manifests.
enum MediaText {
    /// The largest time in seconds, 317 years. Live manifests count from 1970.
    static let timeLimit: Double = 1e10

    /// Parses a decimal number of seconds without sign and exponent. Nil for other text and above `timeLimit`.
    static func seconds(_ text: some Collection<UInt8>) -> Double? {
        guard (1...64).contains(text.count), text.contains(where: FieldText.isDigit) else { return nil }
        var points = 0
        for byte in text where !FieldText.isDigit(byte) {
            guard byte == UInt8(ascii: "."), points == 0 else { return nil }
            points = 1
        }
        guard let value = Double("0" + String(decoding: text, as: UTF8.self) + (points == 0 ? "" : "0")),
            value <= timeLimit
        else { return nil }
        return value
    }

    /// Parses an ISO 8601 duration such as `PT1H2M3.5S` (XML Schema part 2 §3.2.6) in seconds. A year counts 365 days
    /// and a month 30 days. Nil if it is negative, malformed or above `timeLimit`.
    static func duration(_ text: String) -> Double? {
        var rest = Array(text.utf8)[...]
        guard rest.popFirst() == UInt8(ascii: "P"), !rest.isEmpty else { return nil }
        var units: [(name: UInt8, seconds: Double)] = [
            (UInt8(ascii: "Y"), 31_536_000), (UInt8(ascii: "M"), 2_592_000), (UInt8(ascii: "D"), 86_400),
        ]
        var total = 0.0
        var isTime = false
        while let first = rest.first {
            if first == UInt8(ascii: "T"), !isTime, rest.count > 1 {
                isTime = true
                units = [(UInt8(ascii: "H"), 3600), (UInt8(ascii: "M"), 60), (UInt8(ascii: "S"), 1)]
                rest = rest.dropFirst()
                continue
            }
            let digits = rest.prefix { FieldText.isDigit($0) || $0 == UInt8(ascii: ".") }
            rest = rest[digits.endIndex...]
            guard let value = seconds(digits), let name = rest.popFirst(),
                let index = units.firstIndex(where: { $0.name == name })
            else { return nil }
            total += value * units[index].seconds
            units.removeFirst(index + 1)
        }
        return total <= timeLimit ? total : nil
    }

    /// Parses an inclusive byte range `first-last`. Nil for other text and from 2^53 on.
    static func byteRange(_ text: String) -> ByteRange? {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 2, let first = FieldText.byteCount(parts[0]), let last = FieldText.byteCount(parts[1]),
            first <= last
        else { return nil }
        return first..<last + 1
    }

    /// `bytes` without blanks, tabs and line breaks at both ends.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.trimmed(isSpace)
    }

    /// Whether the byte is a blank, a tab, or part of a line break.
    static func isSpace(_ byte: UInt8) -> Bool { XMLReader.isSpace(byte) }

    /// Decodes UTF-8. Throws `.malformed("UTF-8")` at the offset of the text.
    static func string(_ bytes: ArraySlice<UInt8>) throws(MediaError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .malformed("UTF-8", offset: Int64(bytes.startIndex))
        }
        return text
    }

    /// The error for text of an unknown format. It shows the first 16 bytes; bytes other than visible ASCII appear as
    /// `.`.
    static func unknownFormat(_ text: [UInt8]) -> MediaError {
        let shown = text.prefix(16).map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: ".") }
        return .unsupported("first bytes \"\(String(decoding: shown, as: UTF8.self))\"")
    }
}
