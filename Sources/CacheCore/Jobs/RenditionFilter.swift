/// Properties of renditions, all of which must hold; nil: any.
package struct RenditionFilter: Hashable, Sendable {
    /// The largest bit rate. It orders the renditions, and excludes none.
    package var maxBitsPerSecond: Int64?
    /// The largest height of the picture in pixels. A variant stream without a stated height does not match.
    package var maxHeight: Int64?
    /// The language of the sound (RFC 4647 §3.3.1): `de` matches `de` and `de-AT`.
    package var language: String?
    /// The beginning of a codec (RFC 6381), such as `avc1`. It concerns the renditions of the codec's kind.
    package var codecs: String?

    package init(
        maxBitsPerSecond: Int64? = nil, maxHeight: Int64? = nil, language: String? = nil, codecs: String? = nil
    ) {
        self.maxBitsPerSecond = maxBitsPerSecond
        self.maxHeight = maxHeight
        self.language = language
        self.codecs = codecs
    }

    /// Whether the text is a language range: up to eight subtags, `-` between them.
    package static func isLanguage(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 8, omittingEmptySubsequences: false)
        return parts.count <= 8
            && parts.allSatisfy { part in
                (1...8).contains(part.count) && part.allSatisfy { FieldText.isLetter($0) || FieldText.isDigit($0) }
            }
    }

    /// Whether the text can begin a codec: 1 to 64 letters, digits, points and hyphens.
    package static func isCodec(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                FieldText.isLetter($0) || FieldText.isDigit($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-")
            }
    }
}

extension RenditionFilter: CustomStringConvertible {
    private static let names = ["maxBitsPerSecond", "maxHeight", "language", "codecs"]

    /// The form of queries and of the catalog: `maxHeight=720,language=de`.
    package var description: String {
        let values = [maxBitsPerSecond.map(String.init), maxHeight.map(String.init), language, codecs]
        return zip(Self.names, values).compactMap { name, value in value.map { "\(name)=\($0)" } }.joined(
            separator: ",")
    }

    /// Parses the form of ``description``. Nil for another text, and if no property is set.
    package init?(_ text: String) {
        self.init()
        var seen: Set<String> = []
        for part in text.split(separator: ",", maxSplits: Self.names.count, omittingEmptySubsequences: false) {
            let halves = part.split(separator: "=", maxSplits: 1).map(String.init)
            guard halves.count == 2, seen.insert(halves[0]).inserted else { return nil }
            let (name, value) = (halves[0], halves[1])
            switch name {
            case "maxBitsPerSecond", "maxHeight":
                guard let number = Int64(value), number > 0 else { return nil }
                if name == "maxHeight" { maxHeight = number } else { maxBitsPerSecond = number }
            case "language":
                guard Self.isLanguage(value) else { return nil }
                language = value
            case "codecs":
                guard Self.isCodec(value) else { return nil }
                codecs = value
            default: return nil
            }
        }
        if self == RenditionFilter() { return nil }
    }
}
