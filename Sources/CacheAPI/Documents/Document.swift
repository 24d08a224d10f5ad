import CacheCore
import CacheEngine

/// The JSON forms of common values: points in time as RFC 3339 text, durations in seconds, byte ranges as offset and
/// length. Nil becomes null.
extension JSON {
    static func instant(_ time: Timestamp) -> JSON { .string(RFC3339.format(time)) }
    static func instant(_ time: Timestamp?) -> JSON { optional(time, instant) }

    static func seconds(_ duration: Duration?) -> JSON { duration.map { .seconds($0) } ?? .null }

    static func text(_ text: String?) -> JSON { optional(text, JSON.string) }
    static func bytes(_ count: Int64?) -> JSON { optional(count, JSON.integer) }
    static func count(_ count: Int) -> JSON { .integer(Int64(count)) }

    /// A range with a known end.
    static func run(_ range: ByteRange) -> JSON {
        ["offset": .integer(range.lowerBound), "length": .integer(range.length)]
    }
}

extension RecordedError {
    /// The error of a job or of one of its items.
    var json: JSON { ["code": .string(code), "message": .string(message)] }
}
