/// A parsed `Content-Range` (RFC 9110 §14.4).
package enum ContentRange: Hashable, Sendable {
    /// `bytes 0-99/1000`; the length is nil for `/*`.
    case run(ByteRange, of: Int64?)
    /// `bytes */1000`, as in a 416.
    case unsatisfied(of: Int64)

    /// Parses the value of the field. Nil if it has another unit, is malformed or contradictory, or has a position of
    /// 2^53 or more.
    package static func parse(_ text: String) -> ContentRange? {
        let value = FieldText.trimmed(text[...])
        guard let blank = value.utf8.firstIndex(of: UInt8(ascii: " ")), FieldText.lowered(value[..<blank]) == "bytes"
        else { return nil }
        var scanner = TextScanner(value[value.utf8.index(after: blank)...])
        if scanner.take("*/") {
            guard let length = scanner.digits().flatMap(FieldText.byteCount), scanner.isAtEnd else { return nil }
            return .unsatisfied(of: length)
        }
        guard let first = scanner.digits().flatMap(FieldText.byteCount), scanner.take("-"),
            let last = scanner.digits().flatMap(FieldText.byteCount), scanner.take("/"), first <= last
        else { return nil }
        if scanner.take("*") { return scanner.isAtEnd ? .run(first..<last + 1, of: nil) : nil }
        guard let length = scanner.digits().flatMap(FieldText.byteCount), scanner.isAtEnd, last < length else {
            return nil
        }
        return .run(first..<last + 1, of: length)
    }
}

extension ContentRange: CustomStringConvertible {
    /// The value of the field. The range must not be empty: the syntax cannot express an empty range.
    package var description: String {
        switch self {
        case .run(let run, let length):
            "bytes \(run.lowerBound)-\(run.upperBound - 1)/" + (length.map(String.init) ?? "*")
        case .unsatisfied(let length): "bytes */\(length)"
        }
    }
}
