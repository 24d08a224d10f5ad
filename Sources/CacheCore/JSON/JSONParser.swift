/// Strict JSON parser (RFC 8259) for request bodies. Accepts UTF-8 only, no duplicate members, no text after the value,
/// at most 64 levels of nesting, and at most 1,000,000 values.
package struct JSONParser {
    /// The maximum nesting; it bounds the parser's recursion.
    private static let depthLimit = 64
    /// The maximum number of values, which bounds the memory: a value can take 20 times its bytes.
    private static let valueLimit = 1_000_000
    /// The number of members below which an object is searched for a repeated one without an index.
    private static let fewMembers = 16

    private let bytes: [UInt8]
    /// The index of the next byte.
    private var position = 0
    /// The number of open objects and arrays.
    private var depth = 0
    /// The number of values so far.
    private var count = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Parses a complete text. Throws `.malformedRequest` with the reason and the byte position of the error.
    package static func parse(_ bytes: some Sequence<UInt8>) throws(CacheError) -> JSON {
        let bytes = Array(bytes)
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw CacheError(.malformedRequest, "The body is not UTF-8 text.")
        }
        var parser = JSONParser(bytes)
        let value = try parser.value()
        parser.skipSpace()
        guard parser.position == bytes.count else { throw parser.broken("text after the value") }
        return value
    }

    // MARK: Values

    /// Parses one value after optional white space.
    private mutating func value() throws(CacheError) -> JSON {
        count += 1
        guard count <= Self.valueLimit else { throw broken("more than \(Self.valueLimit) values") }
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return try nested { parser throws(CacheError) in try parser.object() }
        case UInt8(ascii: "["): return try nested { parser throws(CacheError) in try parser.array() }
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case let byte? where byte == UInt8(ascii: "-") || FieldText.isDigit(byte): return try number()
        case nil: throw broken("the text ends before a value")
        default: throw broken("invalid value")
        }
    }

    /// Skips the opening bracket and parses an object or an array one level deeper.
    private mutating func nested(_ read: (inout Self) throws(CacheError) -> JSON) throws(CacheError) -> JSON {
        depth += 1
        guard depth <= Self.depthLimit else { throw broken("more than \(Self.depthLimit) levels of nesting") }
        position += 1
        let value = try read(&self)
        depth -= 1
        return value
    }

    /// Parses the rest of an object after its opening brace.
    private mutating func object() throws(CacheError) -> JSON {
        var members: [JSON.Member] = []
        // The keys of an object with many members; few are searched one by one.
        var keys: Set<String> = []
        skipSpace()
        if take("}") { return .object([]) }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw broken("a member's name is missing") }
            let key = try string()
            if members.count == Self.fewMembers { keys = Set(members.map(\.key)) }
            let isFew = members.count < Self.fewMembers
            guard isFew ? !members.contains(where: { $0.key == key }) : keys.insert(key).inserted else {
                throw broken("the member \"\(key)\" occurs twice")
            }
            skipSpace()
            guard take(":") else { throw broken("a colon is missing") }
            members.append(JSON.Member(key, try value()))
            skipSpace()
        } while take(",")
        guard take("}") else { throw broken("a comma or closing brace is missing") }
        return .object(members)
    }

    /// Parses the rest of an array after its opening bracket.
    private mutating func array() throws(CacheError) -> JSON {
        var values: [JSON] = []
        skipSpace()
        if take("]") { return .array([]) }
        repeat {
            values.append(try value())
            skipSpace()
        } while take(",")
        guard take("]") else { throw broken("a comma or closing bracket is missing") }
        return .array(values)
    }

    /// Parses a number (RFC 8259 §6). A whole value in the range of `Int64` becomes `.integer`, also if it is written
    /// with a fraction or an exponent.
    private mutating func number() throws(CacheError) -> JSON {
        let start = position
        _ = take("-")
        let whole = digits()
        guard !whole.isEmpty, whole.count == 1 || whole.first != UInt8(ascii: "0") else {
            throw broken("invalid number")
        }
        var isWhole = true
        if take(".") {
            isWhole = false
            guard !digits().isEmpty else { throw broken("invalid number") }
        }
        if take("e") || take("E") {
            isWhole = false
            if !take("+") { _ = take("-") }
            guard !digits().isEmpty else { throw broken("invalid number") }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let value = Int64(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite else { throw broken("the number is too large") }
        return Int64(exactly: value).map(JSON.integer) ?? .number(value)
    }

    /// Consumes decimal digits and returns them; there may be none.
    private mutating func digits() -> ArraySlice<UInt8> {
        let start = position
        while let byte = peek, FieldText.isDigit(byte) { position += 1 }
        return bytes[start..<position]
    }

    /// Consumes a literal name: `true`, `false` or `null`.
    private mutating func word(_ word: StaticString, _ value: JSON) throws(CacheError) -> JSON {
        let length = word.utf8CodeUnitCount
        guard word.withUTF8Buffer({ $0.elementsEqual(bytes[position...].prefix(length)) }) else {
            throw broken("invalid value")
        }
        position += length
        return value
    }

    /// The next byte; nil at the end.
    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Consumes the character if it is next. Returns whether it was.
    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    /// Skips white space: space, tab, line feed, carriage return (RFC 8259 §2).
    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    /// The error at the current position.
    private func broken(_ reason: String) -> CacheError {
        CacheError(.malformedRequest, "The body is not JSON: \(reason), at byte \(position).")
    }
}

// MARK: Strings

extension JSONParser {
    /// Parses a string from its opening quote. The text was validated as UTF-8 before.
    private mutating func string() throws(CacheError) -> String {
        position += 1
        var text: [UInt8] = []
        while true {
            let run = bytes[position...].prefix { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            position = run.endIndex
            guard let byte = peek else { throw broken("the text ends inside a string") }
            position += 1
            switch byte {
            // Most strings have no escapes.
            case UInt8(ascii: "\""): return String(decoding: text.isEmpty ? run : (text + run)[...], as: UTF8.self)
            case UInt8(ascii: "\\"):
                text += run
                try escaped(into: &text)
            default: throw broken("a control character inside a string")
            }
        }
    }

    /// Parses the rest of an escape sequence after its backslash (RFC 8259 §7).
    private mutating func escaped(into text: inout [UInt8]) throws(CacheError) {
        guard let byte = peek else { throw broken("the text ends inside a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): text += try scalar().utf8
        default: throw broken("unknown escape sequence")
        }
    }

    /// Parses the rest of `\uXXXX`; a surrogate pair is two such sequences. Unpaired surrogates are errors.
    private mutating func scalar() throws(CacheError) -> Unicode.Scalar {
        let first = try unit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard (0xD800..<0xDC00).contains(first), take("\\"), take("u") else { throw broken("unpaired surrogate") }
        let second = try unit()
        guard (0xDC00..<0xE000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00)))
        else { throw broken("unpaired surrogate") }
        return scalar
    }

    /// Parses four hexadecimal digits: one UTF-16 code unit.
    private mutating func unit() throws(CacheError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch peek {
            case let byte? where FieldText.isDigit(byte): digit = byte - UInt8(ascii: "0")
            // The bit 0x20 maps upper case to lower case.
            case let byte? where (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20):
                digit = (byte | 0x20) - UInt8(ascii: "a") + 10
            default: throw broken("four hexadecimal digits are missing")
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }
}
