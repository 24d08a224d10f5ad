/// Reads a short text of fixed shape from left to right; every step fails without moving where it does not fit.
struct TextScanner {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    var isAtEnd: Bool { position == bytes.count }

    /// The next byte, left where it is.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Takes `text`, letter for letter.
    mutating func take(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { wanted in
            guard bytes.count - position >= wanted.count,
                wanted.indices.allSatisfy({ bytes[position + $0] == wanted[$0] })
            else { return false }
            position += wanted.count
            return true
        }
    }

    /// Takes one byte of those in `choices`.
    mutating func take(anyOf choices: StaticString) -> UInt8? {
        guard let byte = next, choices.withUTF8Buffer({ $0.contains(byte) }) else { return nil }
        position += 1
        return byte
    }

    /// Takes exactly `count` digits as a number; `count` is at most 9.
    mutating func number(digits count: Int) -> Int? {
        guard bytes.count - position >= count else { return nil }
        let digits = bytes[position..<position + count]
        guard let value = FieldText.number(digits) else { return nil }
        position += count
        return Int(value)
    }

    /// Takes all digits that follow; nil where there is none.
    mutating func digits() -> ArraySlice<UInt8>? {
        let end = bytes[position...].firstIndex { !FieldText.isDigit($0) } ?? bytes.count
        guard end > position else { return nil }
        defer { position = end }
        return bytes[position..<end]
    }

    /// Takes all letters that follow; empty where there is none.
    mutating func letters() -> String {
        let end = bytes[position...].firstIndex { !FieldText.isLetter($0) } ?? bytes.count
        defer { position = end }
        return String(decoding: bytes[position..<end], as: UTF8.self)
    }
}
