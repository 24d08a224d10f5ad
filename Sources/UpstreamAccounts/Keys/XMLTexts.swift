import CacheCore

/// Strict reader for the texts of a small XML document in UTF-8, as STS returns it. Attributes are skipped; document
/// types and unknown entities are errors.
struct XMLTexts {
    /// The text of an element without elements. `path`: the names from the root to the element.
    struct Leaf: Hashable {
        var path: [String]
        var text: String
    }

    private static let depthLimit = 16

    private let bytes: [UInt8]
    private var position = 0
    /// The names of the open elements.
    private var open: [String] = []
    /// The text of the innermost element since its start tag; nil if it contains an element.
    private var text: [UInt8]?
    private var hasRoot = false
    private var leaves: [Leaf] = []

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The texts in document order; nil if the document is not well-formed.
    static func parse(_ bytes: [UInt8]) -> [Leaf]? {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        var reader = XMLTexts(bytes)
        while reader.position < bytes.count {
            guard reader.step() else { return nil }
        }
        return reader.hasRoot && reader.open.isEmpty ? reader.leaves : nil
    }

    /// Consumes one tag, comment or text. Returns false if it is malformed.
    private mutating func step() -> Bool {
        if take("<?") { return takeUntil("?>") != nil }
        if take("<!--") { return takeUntil("-->") != nil }
        if take("<![CDATA[") {
            guard !open.isEmpty, let content = takeUntil("]]>") else { return false }
            text?.append(contentsOf: content)
            return true
        }
        if take("<!") { return false }
        if take("</") { return endTag() }
        if take("<") { return startTag() }
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
        let content = bytes[position..<end]
        position = end
        guard !open.isEmpty else { return content.allSatisfy(Self.isSpace) }
        guard let decoded = Self.decoded(content) else { return false }
        text?.append(contentsOf: decoded)
        return true
    }

    private mutating func startTag() -> Bool {
        guard !open.isEmpty || !hasRoot, open.count < Self.depthLimit, let name = takeName() else { return false }
        hasRoot = true
        while true {
            let start = position
            while let byte = peek, Self.isSpace(byte) { position += 1 }
            if take("/>") {
                leaves.append(Leaf(path: open + [name], text: ""))
                text = nil
                return true
            }
            if take(">") { break }
            guard position > start, takeName() != nil, take("="), let quote = peek, quote == 0x22 || quote == 0x27
            else { return false }
            let rest = bytes[(position + 1)...]
            guard let end = rest.firstIndex(where: { $0 == quote || $0 == UInt8(ascii: "<") }), bytes[end] == quote
            else { return false }
            position = end + 1
        }
        open.append(name)
        text = []
        return true
    }

    private mutating func endTag() -> Bool {
        guard let name = takeName(), name == open.last else { return false }
        while let byte = peek, Self.isSpace(byte) { position += 1 }
        guard take(">") else { return false }
        if let text {
            leaves.append(Leaf(path: open, text: TokenText.trimmed(text)))
        }
        text = nil
        open.removeLast()
        return true
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Consumes `text` if it follows.
    private mutating func take(_ text: String) -> Bool {
        guard bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    /// Consumes the bytes up to and including `end`. Nil if it does not follow.
    private mutating func takeUntil(_ end: String) -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count {
            let found = position
            if take(end) { return bytes[start..<found] }
            position += 1
        }
        return nil
    }

    /// Consumes a name and returns it without its prefix. Nil if none follows.
    private mutating func takeName() -> String? {
        let start = position
        while let byte = peek, Self.isNameByte(byte) { position += 1 }
        let name = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let first = name.utf8.first, !FieldText.isDigit(first), first != UInt8(ascii: "-") else { return nil }
        return name.split(separator: ":", omittingEmptySubsequences: false).last.map(String.init)
    }

    /// Replaces the predefined entities and character references (XML 1.0 §4.1, §4.6). Nil if one is unknown.
    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "&") else {
                decoded.append(byte)
                continue
            }
            guard let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return nil }
            let name = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            let entities: [String: Unicode.Scalar] = ["lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": "\""]
            guard let scalar = entities[name] ?? reference(name) else { return nil }
            decoded += String(Character(scalar)).utf8
        }
        return decoded
    }

    /// The character of `#43` or `#x2B`.
    private static func reference(_ name: String) -> Unicode.Scalar? {
        let isHexadecimal = name.hasPrefix("#x")
        let digits = name.dropFirst(isHexadecimal ? 2 : 1)
        guard name.hasPrefix("#"), let first = digits.first, first != "+", first != "-",
            let code = UInt32(digits, radix: isHexadecimal ? 16 : 10), code >= 0x20 || code == 9 || code == 10
        else { return nil }
        return Unicode.Scalar(code)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 9 || byte == 10 || byte == 13 }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        FieldText.isLetter(byte) || FieldText.isDigit(byte) || byte >= 0x80 || ":_-.".utf8.contains(byte)
    }
}
