import CacheCore

/// The variables of a playlist (draft-pantos-hls-rfc8216bis §4.3).
struct HLSVariables {
    private enum Value {
        case text(String)
        /// Defined by the multivariant playlist or by the URL of the playlist, which the parser does not know. References
        /// to it stay as they are, as in ffmpeg.
        case external
    }

    private var values: [String: Value] = [:]
    /// The number of bytes by which substitution may still enlarge the playlist.
    private var budget: Int

    init(limits: MediaLimits) { budget = limits.playlistBytes }

    /// Applies `EXT-X-DEFINE`. Throws `.malformed("EXT-X-DEFINE")` if the name is invalid or already defined.
    mutating func define(_ tag: HLSTag) throws(MediaError) {
        let attributes = try HLSAttributes(tag, variables: &self)
        let name: String
        let value: Value
        if let own = attributes["NAME"] {
            guard let text = attributes["VALUE"] else { throw tag.malformed }
            (name, value) = (own, .text(text))
        } else if let other = attributes["IMPORT"] ?? attributes["QUERYPARAM"] {
            (name, value) = (other, .external)
        } else {
            throw tag.malformed
        }
        guard Self.isName(name.utf8), values.updateValue(value, forKey: name) == nil else { throw tag.malformed }
    }

    /// Decodes a text and replaces each `{$name}` by the value of the variable. Values are not substituted again.
    ///
    /// Throws `.malformed("variable")` for an undefined variable, and `.tooLarge("playlist")`.
    mutating func substituted(_ text: ArraySlice<UInt8>) throws(MediaError) -> String {
        guard text.contains(UInt8(ascii: "{")) else { return try MediaText.string(text) }
        var result: [UInt8] = []
        var rest = text
        while let open = rest.firstIndex(of: UInt8(ascii: "{")) {
            result += rest[..<open]
            rest = rest[open...]
            let name = rest.dropFirst(2).prefix(while: Self.isNameByte)
            guard rest.dropFirst().first == UInt8(ascii: "$"), !name.isEmpty,
                name.endIndex < rest.endIndex, rest[name.endIndex] == UInt8(ascii: "}")
            else {
                result.append(UInt8(ascii: "{"))
                rest = rest.dropFirst()
                continue
            }
            switch values[String(decoding: name, as: UTF8.self)] {
            case nil: throw .malformed("variable", offset: Int64(open))
            case .external: result += rest[...name.endIndex]
            case .text(let value):
                budget -= value.utf8.count
                guard budget >= 0 else { throw .tooLarge("playlist") }
                result += value.utf8
            }
            rest = rest[(name.endIndex + 1)...]
        }
        result += rest
        guard let string = String(validating: result, as: UTF8.self) else {
            throw .malformed("UTF-8", offset: Int64(text.startIndex))
        }
        return string
    }

    private static func isName(_ text: some Collection<UInt8>) -> Bool { !text.isEmpty && text.allSatisfy(isNameByte) }

    /// Whether the byte is one of `a`–`z`, `A`–`Z`, `0`–`9`, `-`, `_`.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        FieldText.isLetter(byte) || FieldText.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}
