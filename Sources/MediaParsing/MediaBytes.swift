import CacheCore

/// Bytes of a file with their place in it. Positions are offsets from the first byte of the file.
struct MediaBytes {
    /// The position of the first byte.
    let offset: Int64
    let bytes: ArraySlice<UInt8>

    /// The position behind the last byte.
    var end: Int64 { offset + Int64(bytes.count) }

    /// The byte at `position`; nil outside.
    func byte(at position: Int64) -> UInt8? {
        guard position >= offset, position < end else { return nil }
        return bytes[bytes.startIndex + Int(position - offset)]
    }

    /// The big-endian unsigned number of `count` bytes, at most 8, at `position`; nil if it is not completely inside.
    func number(at position: Int64, count: Int) -> UInt64? {
        guard count <= 8, position >= offset, position <= end, end - position >= Int64(count) else { return nil }
        let first = bytes.startIndex + Int(position - offset)
        return bytes[first..<first + count].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Whether the bytes at `position` are those of `text`.
    func holds(_ text: StaticString, at position: Int64) -> Bool {
        let count = text.utf8CodeUnitCount
        guard position >= offset, position <= end, end - position >= Int64(count) else { return false }
        let first = bytes.startIndex + Int(position - offset)
        return text.withUTF8Buffer { bytes[first..<first + count].elementsEqual($0) }
    }

    /// The bytes of `range` that are inside.
    func part(_ range: ByteRange) -> MediaBytes {
        let inside = range.clamped(to: offset..<end)
        let first = bytes.startIndex + Int(inside.lowerBound - offset)
        return MediaBytes(offset: inside.lowerBound, bytes: bytes[first..<first + Int(inside.length)])
    }

    /// Up to 8 bytes from `position` in hexadecimal, for error messages.
    func hexadecimal(at position: Int64) -> String {
        part(ByteRange(offset: max(0, position), length: 8)).bytes.hexadecimal
    }
}

extension Sequence<UInt8> {
    /// Two hexadecimal digits for each byte, separated by spaces.
    package var hexadecimal: String {
        map(\.hexDigits).joined(separator: " ")
    }
}
