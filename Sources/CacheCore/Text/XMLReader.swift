/// The reason why a text is not read as XML. The texts name the part or the limit.
package enum XMLError: Error {
    /// The text is not well-formed at the byte `offset`.
    case malformed(String, offset: Int64)
    /// A part of XML that is refused, such as a document type.
    case unsupported(String)
    case tooLarge(String)
}

/// Pull parser for XML 1.0 documents in UTF-8, without document types and external entities: manifests, and the
/// responses of object stores and servers.
///
/// Names are local names: prefixes of elements are removed, and attributes with a prefix keep it. The parser reads each
/// byte once and holds one open element name for each level of nesting.
package struct XMLReader {
    /// A start tag.
    package struct Element {
        /// The local name.
        package var name: String
        /// The offset of the `<`.
        package var offset: Int64
        fileprivate var attributes: [(name: String, value: String)] = []

        /// The value of an attribute; nil if it is absent.
        package func attribute(_ name: String) -> String? { attributes.first { $0.name == name }?.value }
    }

    package enum Event {
        case start(Element)
        /// The end of the innermost open element.
        case end
        /// Text or CDATA within an element; one text can result in several events.
        case text(String)
        /// The end of the document.
        case finished
    }

    /// The maximum number of attributes of an element.
    private static let attributeLimit = 256

    private let bytes: [UInt8]
    private var position: Int
    private let depthLimit: Int
    /// The names of the open elements, with prefixes.
    private var open: [ArraySlice<UInt8>] = []
    private var hasRoot = false
    /// Whether the last start tag was an empty-element tag, whose end is still to be reported.
    private var isEmptyElement = false

    package init(_ text: [UInt8], depth: Int) {
        bytes = text
        position = Self.withoutByteOrderMark(text).startIndex
        depthLimit = depth
    }

    /// The next event. Throws `.malformed("XML")`, `.malformed("entity")`, `.malformed("UTF-8")`,
    /// `.unsupported("DOCTYPE")`, and `.tooLarge` for "depth" or "attributes".
    package mutating func next() throws(XMLError) -> Event {
        if isEmptyElement {
            isEmptyElement = false
            open.removeLast()
            return .end
        }
        while position < bytes.count {
            if bytes[position] != UInt8(ascii: "<") {
                let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
                let text = bytes[position..<end]
                guard !open.isEmpty || text.allSatisfy(Self.isSpace) else { throw malformed }
                position = end
                if !open.isEmpty { return .text(try decoded(text)) }
            } else if take("<?") {
                _ = try takeUntil("?>")
            } else if take("<!--") {
                _ = try takeUntil("-->")
            } else if take("<![CDATA[") {
                guard !open.isEmpty else { throw malformed }
                return .text(try Self.string(try takeUntil("]]>")))
            } else if take("<!") {
                let name = FieldText.lowered(String(decoding: bytes[position...].prefix(7), as: UTF8.self))
                throw name == "doctype" ? .unsupported("DOCTYPE") : malformed
            } else if take("</") {
                try endTag()
                return .end
            } else {
                return .start(try startTag())
            }
        }
        guard open.isEmpty, hasRoot else { throw malformed }
        return .finished
    }

    /// The next child of the current element, whose text is skipped; nil at its end.
    package mutating func nextChild() throws(XMLError) -> Element? {
        while true {
            switch try next() {
            case .start(let element): return element
            case .end, .finished: return nil
            case .text: continue
            }
        }
    }

    /// Skips the rest of the current element.
    package mutating func skip() throws(XMLError) {
        let level = open.count
        while open.count >= level { _ = try next() }
    }

    /// Consumes the rest of the current element, which contains text; its elements are skipped. The text has no blanks
    /// at both ends.
    package mutating func text() throws(XMLError) -> String {
        var text: [UInt8] = []
        while true {
            switch try next() {
            case .text(let part): text += part.utf8
            case .start: try skip()
            case .end, .finished: return String(decoding: text.trimmed(Self.isSpace), as: UTF8.self)
            }
        }
    }
}

extension XMLReader {
    private var malformed: XMLError { .malformed("XML", offset: Int64(position)) }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Consumes `text` if it follows.
    private mutating func take(_ text: StaticString) -> Bool {
        let isNext = text.withUTF8Buffer { bytes[position...].starts(with: $0) }
        if isNext { position += text.utf8CodeUnitCount }
        return isNext
    }

    /// Consumes the text up to and including `end`.
    private mutating func takeUntil(_ end: StaticString) throws(XMLError) -> ArraySlice<UInt8> {
        let start = position
        let first = end.withUTF8Buffer { $0.first }
        while let found = bytes[position...].firstIndex(where: { $0 == first }) {
            position = found
            if take(end) { return bytes[start..<found] }
            position += 1
        }
        position = start
        throw malformed
    }

    private mutating func skipSpace() {
        while let byte = peek, Self.isSpace(byte) { position += 1 }
    }

    /// Consumes a name with its prefix.
    private mutating func takeName() throws(XMLError) -> ArraySlice<UInt8> {
        let start = position
        while let byte = peek, Self.isNameByte(byte) { position += 1 }
        let name = bytes[start..<position]
        guard let first = name.first, !FieldText.isDigit(first), first != UInt8(ascii: "-"), first != UInt8(ascii: ".")
        else { throw malformed }
        return name
    }

    /// Consumes the rest of an end tag; it must match the innermost open element.
    private mutating func endTag() throws(XMLError) {
        let start = position
        let name = try takeName()
        skipSpace()
        guard let expected = open.popLast(), name.elementsEqual(expected), take(">") else {
            position = start
            throw malformed
        }
    }

    /// Consumes a start tag with its attributes.
    private mutating func startTag() throws(XMLError) -> Element {
        guard !open.isEmpty || !hasRoot else { throw malformed }
        guard open.count < depthLimit else { throw .tooLarge("depth") }
        let offset = Int64(position)
        position += 1
        let name = try takeName()
        let local = name.firstIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
        var element = Element(name: try Self.string(local), offset: offset)
        while true {
            let start = position
            skipSpace()
            if take(">") { break }
            if take("/>") {
                isEmptyElement = true
                break
            }
            guard position > start else { throw malformed }
            guard element.attributes.count < Self.attributeLimit else { throw .tooLarge("attributes") }
            element.attributes.append(try attribute())
        }
        open.append(name)
        hasRoot = true
        return element
    }

    /// Consumes an attribute.
    private mutating func attribute() throws(XMLError) -> (name: String, value: String) {
        let name = try Self.string(try takeName())
        skipSpace()
        guard take("=") else { throw malformed }
        skipSpace()
        guard let quote = peek, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { throw malformed }
        position += 1
        guard let end = bytes[position...].firstIndex(where: { $0 == quote || $0 == UInt8(ascii: "<") }),
            bytes[end] == quote
        else { throw malformed }
        let value = bytes[position..<end]
        position = end + 1
        return (name, try decoded(value))
    }

    /// Decodes text with entities and character references (XML 1.0 §4.1 and §4.6).
    private func decoded(_ text: ArraySlice<UInt8>) throws(XMLError) -> String {
        guard text.contains(UInt8(ascii: "&")) else { return try Self.string(text) }
        var result: [UInt8] = []
        var rest = text
        while let start = rest.firstIndex(of: UInt8(ascii: "&")) {
            result += rest[..<start]
            // The longest reference is `&#x10FFFF;`; leading zeros are accepted up to 16 bytes.
            guard let end = rest[start...].prefix(16).firstIndex(of: UInt8(ascii: ";")),
                let scalar = Self.scalar(rest[(start + 1)..<end])
            else { throw .malformed("entity", offset: Int64(start)) }
            result += String(Character(scalar)).utf8
            rest = rest[(end + 1)...]
        }
        result += rest
        guard let string = String(validating: result, as: UTF8.self) else {
            throw .malformed("UTF-8", offset: Int64(text.startIndex))
        }
        return string
    }

    /// The character of an entity name or of a character reference; nil if it is unknown or not permitted in XML.
    private static func scalar(_ name: ArraySlice<UInt8>) -> Unicode.Scalar? {
        let text = String(decoding: name, as: UTF8.self)
        switch text {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "apos": return "'"
        case "quot": return "\""
        default: break
        }
        let isHexadecimal = text.hasPrefix("#x")
        let digits = text.dropFirst(isHexadecimal ? 2 : 1)
        guard text.hasPrefix("#"), !digits.hasPrefix("+"), !digits.hasPrefix("-"),
            let code = UInt32(digits, radix: isHexadecimal ? 16 : 10), let scalar = Unicode.Scalar(code),
            code >= 0x20 || code == 0x09 || code == 0x0A || code == 0x0D, code & 0xFFFE != 0xFFFE
        else { return nil }
        return scalar
    }

    /// Decodes UTF-8. Throws `.malformed("UTF-8")` at the offset of the text.
    private static func string(_ bytes: ArraySlice<UInt8>) throws(XMLError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .malformed("UTF-8", offset: Int64(bytes.startIndex))
        }
        return text
    }

    /// Removes a byte order mark of UTF-8.
    package static func withoutByteOrderMark(_ text: [UInt8]) -> ArraySlice<UInt8> {
        text.starts(with: [0xEF, 0xBB, 0xBF]) ? text[3...] : text[...]
    }

    /// Whether the byte is white space (XML 1.0 §2.3): a blank, a tab, or part of a line break.
    package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    /// Whether a byte can be part of a name. All bytes outside of ASCII are accepted.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        FieldText.isLetter(byte) || FieldText.isDigit(byte) || byte >= 0x80 || ":_-.".utf8.contains(byte)
    }
}
