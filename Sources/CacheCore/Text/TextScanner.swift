/// Scanner for short texts of fixed syntax. A step that does not match fails without moving.
struct TextScanner {
    private let bytes: [UInt8]
    /// The number of consumed bytes.
    private(set) var position = 0

    init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    /// Whether all bytes are consumed.
    var isAtEnd: Bool { position == bytes.count }

    /// The next byte without consuming it; nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Consumes `text`; the case of letters counts.
    mutating func take(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { wanted in
            guard bytes.count - position >= wanted.count,
                wanted.indices.allSatisfy({ bytes[position + $0] == wanted[$0] })
            else { return false }
            position += wanted.count
            return true
        }
    }

    /// Consumes one byte of `choices` and returns it.
    mutating func take(anyOf choices: StaticString) -> UInt8? {
        guard let byte = next, choices.withUTF8Buffer({ $0.contains(byte) }) else { return nil }
        position += 1
        return byte
    }

    /// Consumes exactly `count` digits and returns the number; `count` is at most 9.
    mutating func number(digits count: Int) -> Int? {
        guard bytes.count - position >= count else { return nil }
        let digits = bytes[position..<position + count]
        guard let value = FieldText.number(digits) else { return nil }
        position += count
        return Int(value)
    }

    /// Consumes all following digits; nil if there is none.
    mutating func digits() -> ArraySlice<UInt8>? {
        let end = bytes[position...].firstIndex { !FieldText.isDigit($0) } ?? bytes.count
        guard end > position else { return nil }
        defer { position = end }
        return bytes[position..<end]
    }

    /// Consumes all following ASCII letters; empty if there is none.
    mutating func letters() -> String {
        let end = bytes[position...].firstIndex { !FieldText.isLetter($0) } ?? bytes.count
        defer { position = end }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }
}
