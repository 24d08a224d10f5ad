/// Writes JSON text (RFC 8259) into one buffer.
///
/// Objects and arrays are closed when the next entry is written at an outer level. Entries must be written in document
/// order.
struct JSONTextWriter {
    private(set) var bytes: [UInt8] = []
    /// The closing brackets of the open objects and arrays, outermost first.
    private var closings: [UInt8] = []

    /// The number of open objects and arrays.
    var level: Int { closings.count }

    /// Begins a member of the object at `level`.
    mutating func key(_ key: String, at level: Int) {
        begin(after: "{", at: level)
        text(key)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Begins an item of the array at `level`.
    mutating func item(at level: Int) { begin(after: "[", at: level) }

    /// Writes the separator of an entry, unless the object or array has just been opened.
    private mutating func begin(after opening: Unicode.Scalar, at level: Int) {
        close(to: level)
        if bytes.last != UInt8(ascii: opening) { bytes.append(UInt8(ascii: ",")) }
    }

    mutating func close(to level: Int) {
        while closings.count > level { bytes.append(closings.removeLast()) }
    }

    mutating func openObject() { open("{", "}") }
    mutating func openArray() { open("[", "]") }

    private mutating func open(_ opening: Unicode.Scalar, _ closing: Unicode.Scalar) {
        bytes.append(UInt8(ascii: opening))
        closings.append(UInt8(ascii: closing))
    }
}

// MARK: Scalars

extension JSONTextWriter {
    mutating func null() { literal("null") }
    mutating func bool(_ value: Bool) { literal(value ? "true" : "false") }

    /// JSON has no infinity and no NaN (RFC 8259 §6); they become `null`. Whole numbers below 10^15 get no fraction.
    mutating func number(_ value: Double) {
        guard value.isFinite else { return null() }
        if value == value.rounded(), abs(value) < 1e15 { return integer(Int64(value)) }
        var digits = value.description
        digits.withUTF8 { bytes.append(contentsOf: $0) }
    }

    mutating func integer(_ value: some FixedWidthInteger) {
        guard let small = UInt8(exactly: value), small < 10 else {
            var digits = String(value)
            return digits.withUTF8 { bytes.append(contentsOf: $0) }
        }
        bytes.append(UInt8(ascii: "0") + small)
    }

    private mutating func literal(_ literal: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Writes a string with quotes. Escapes quotes, backslashes and control characters (RFC 8259 §7).
    mutating func text(_ value: String) {
        var value = value
        bytes.append(UInt8(ascii: "\""))
        value.withUTF8 { content in
            if content.contains(where: Self.isEscaped) {
                for byte in content {
                    if Self.isEscaped(byte) { escape(byte) } else { bytes.append(byte) }
                }
            } else {
                bytes.append(contentsOf: content)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private mutating func escape(_ byte: UInt8) {
        switch Unicode.Scalar(byte) {
        case "\"": literal("\\\"")
        case "\\": literal("\\\\")
        case "\n": literal("\\n")
        case "\r": literal("\\r")
        case "\t": literal("\\t")
        default:
            literal(byte < 0x10 ? "\\u000" : "\\u00")
            var digits = String(byte, radix: 16)
            digits.withUTF8 { bytes.append(contentsOf: $0) }
        }
    }
}
