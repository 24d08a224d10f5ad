/// What a response says of its body's length (RFC 9110 §8.6).
enum ContentLength: Hashable {
    case absent
    case bytes(Int64)
    /// Several different ones, or no number that can be counted.
    case garbled

    /// The number of bytes, where one is stated.
    var count: Int64? { if case .bytes(let count) = self { count } else { nil } }

    /// Reads the field; a list of equal numbers counts as one, and beside `Transfer-Encoding` it counts for nothing
    /// (RFC 9112 §6.3).
    static func read(_ headers: HeaderList) -> ContentLength {
        let values = headers.values("Content-Length")
        if values.isEmpty || headers["Transfer-Encoding"] != nil { return .absent }
        let lengths = values.flatMap { FieldText.members(of: $0) }.map { FieldText.byteCount($0.utf8) }
        guard let first = lengths.first, let length = first, lengths.allSatisfy({ $0 == length }) else {
            return .garbled
        }
        return .bytes(length)
    }
}
