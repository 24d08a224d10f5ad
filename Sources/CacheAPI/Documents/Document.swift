import CacheCore
import CacheEngine

/// How values look in the API: instants as text, durations in seconds, byte runs as offset and length.
extension JSON {
    static func instant(_ time: Timestamp) -> JSON { .string(RFC3339.format(time)) }
    static func instant(_ time: Timestamp?) -> JSON { optional(time, instant) }

    static func seconds(_ duration: Duration) -> JSON { .number((duration.inSeconds * 1e6).rounded() / 1e6) }
    static func seconds(_ duration: Duration?) -> JSON { optional(duration, seconds) }

    static func text(_ text: String?) -> JSON { optional(text, JSON.string) }
    static func bytes(_ count: Int64?) -> JSON { optional(count, JSON.integer) }
    static func count(_ count: Int) -> JSON { .integer(Int64(count)) }

    static func run(_ range: ByteRange) -> JSON {
        ["offset": .integer(range.lowerBound), "length": .integer(range.length)]
    }
}

extension RecordedError {
    var json: JSON { ["code": .string(code), "message": .string(message)] }
}
