/// The body length that a response states (RFC 9110 §8.6).
enum ContentLength: Hashable {
    case absent
    case bytes(Int64)
    /// Several different values, or one that is not a number below 2^53.
    case garbled

    /// The number of bytes; nil if none is stated.
    var count: Int64? { if case .bytes(let count) = self { count } else { nil } }

    /// Parses the field. Equal values count as one. With `Transfer-Encoding` the field is ignored (RFC 9112 §6.3).
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
