package import CacheCore

/// Reads JSON text strictly (RFC 8259): UTF-8, no member twice, nothing after the value, at most 64 levels.
package struct JSONParser {
    private static let depthLimit = 64

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Throws `.malformedRequest` with the place where the text stops being JSON.
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

    private mutating func value() throws(CacheError) -> JSON {
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return try nested { parser throws(CacheError) in try parser.object() }
        case UInt8(ascii: "["): return try nested { parser throws(CacheError) in try parser.array() }
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case let byte? where byte == UInt8(ascii: "-") || Self.isDigit(byte): return try number()
        case nil: throw broken("the text ends too early")
        default: throw broken("no value begins so")
        }
    }

    private mutating func nested(_ read: (inout Self) throws(CacheError) -> JSON) throws(CacheError) -> JSON {
        depth += 1
        guard depth <= Self.depthLimit else { throw broken("nested too deeply") }
        position += 1
        let value = try read(&self)
        depth -= 1
        return value
    }

    private mutating func object() throws(CacheError) -> JSON {
        var members: [JSON.Member] = []
        var keys: Set<String> = []
        skipSpace()
        if take("}") { return .object([]) }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw broken("a member's name is missing") }
            let key = try string()
            guard keys.insert(key).inserted else { throw broken("the member \"\(key)\" is there twice") }
            skipSpace()
            guard take(":") else { throw broken("a colon is missing") }
            members.append(JSON.Member(key, try value()))
            skipSpace()
        } while take(",")
        guard take("}") else { throw broken("a comma or closing brace is missing") }
        return .object(members)
    }

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

    private mutating func number() throws(CacheError) -> JSON {
        let start = position
        _ = take("-")
        let whole = digits()
        guard !whole.isEmpty, whole.count == 1 || whole.first != UInt8(ascii: "0") else {
            throw broken("no number is written so")
        }
        var isWhole = true
        if take(".") {
            isWhole = false
            guard !digits().isEmpty else { throw broken("no number is written so") }
        }
        if take("e") || take("E") {
            isWhole = false
            if !take("+") { _ = take("-") }
            guard !digits().isEmpty else { throw broken("no number is written so") }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let value = Int64(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite else { throw broken("the number is too large") }
        return Int64(exactly: value).map(JSON.integer) ?? .number(value)
    }

    private mutating func digits() -> ArraySlice<UInt8> {
        let start = position
        while let byte = peek, Self.isDigit(byte) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws(CacheError) -> JSON {
        let length = word.utf8CodeUnitCount
        guard word.withUTF8Buffer({ $0.elementsEqual(bytes[position...].prefix(length)) }) else {
            throw broken("no value begins so")
        }
        position += length
        return value
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    private func broken(_ reason: String) -> CacheError {
        CacheError(.malformedRequest, "The body is not JSON: \(reason), at byte \(position).")
    }
}

// MARK: Strings

extension JSONParser {
    private mutating func string() throws(CacheError) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try escaped(into: &text)
            case ..<0x20: throw broken("a control character inside a string")
            default: text.append(byte)
            }
        }
        throw broken("the text ends inside a string")
    }

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
        default: throw broken("no such escape")
        }
    }

    private mutating func scalar() throws(CacheError) -> Unicode.Scalar {
        let first = try unit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard (0xD800..<0xDC00).contains(first), take("\\"), take("u") else { throw broken("half a surrogate pair") }
        let second = try unit()
        guard (0xDC00..<0xE000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10 | (second - 0xDC00)))
        else { throw broken("half a surrogate pair") }
        return scalar
    }

    private mutating func unit() throws(CacheError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch peek {
            case let byte? where Self.isDigit(byte): digit = byte - UInt8(ascii: "0")
            // Letters, large and small: the digits of 10 to 15.
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
