import CacheCore

/// One line of an HLS playlist (RFC 8216 §4.1).
enum HLSLine {
    case tag(HLSTag)
    /// A URI line, with the offset of its first byte.
    case uri(ArraySlice<UInt8>)
}

/// A tag: `#EXTINF:6.0,` has the name `EXTINF` and the value `6.0,`.
struct HLSTag {
    /// Without the `#`.
    var name: String
    /// After the colon, without blanks at both ends; empty if there is no colon. Its start index is its offset.
    var value: ArraySlice<UInt8>
    /// The offset of the `#` in the playlist.
    var offset: Int64

    /// The error for an invalid or missing value.
    var malformed: MediaError { .malformed(name, offset: offset) }

    /// The value as a whole number. Throws `.malformed` with the name of the tag.
    func number() throws(MediaError) -> Int64 {
        guard let number = FieldText.number(value) else { throw malformed }
        return number
    }
}

/// Iterates over the tags and URI lines of a playlist. Blank lines and comments are skipped. Lines end with LF or CRLF.
struct HLSLines {
    private var rest: ArraySlice<UInt8>
    /// The number of the last line, from 1.
    private(set) var number = 0

    init(_ text: ArraySlice<UInt8>) { rest = text }

    /// The next line; nil at the end. Throws `.malformed("UTF-8")`; the following call continues behind that line.
    mutating func next() throws(MediaError) -> HLSLine? {
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
            let line = MediaText.trimmed(rest[..<end])
            rest = rest[min(end + 1, rest.endIndex)...]
            number += 1
            guard let first = line.first else { continue }
            guard first == UInt8(ascii: "#") else { return .uri(line) }
            guard line.dropFirst().starts(with: "EXT".utf8) else { continue }
            let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
            return .tag(
                HLSTag(
                    name: try MediaText.string(line[line.startIndex + 1..<colon]),
                    value: MediaText.trimmed(line[min(colon + 1, line.endIndex)...]),
                    offset: Int64(line.startIndex)))
        }
        return nil
    }
}
