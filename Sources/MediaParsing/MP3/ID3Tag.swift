import CacheCore

/// ID3v2 tags (id3.org, ID3v2.4 §3.1); they can precede MP3 and MPEG-TS.
enum ID3Tag {
    /// The position behind the tag at `position`, which can be outside of `bytes`; nil if no tag begins there.
    static func end(in bytes: MediaBytes, at position: Int64) -> Int64? {
        guard bytes.holds("ID3", at: position), let flags = bytes.byte(at: position + 5),
            let size = bytes.number(at: position + 6, count: 4), size & 0x8080_8080 == 0
        else { return nil }
        let length = (size & 0x7F) | (size >> 1 & 0x3F80) | (size >> 2 & 0x1F_C000) | (size >> 3 & 0xFE0_0000)
        return position + 10 + Int64(length) + (flags & 0x10 == 0 ? 0 : 10)
    }

    /// The position behind all tags at the beginning of a file; 0 without a tag. Reads `ahead` bytes behind each tag,
    /// and not the tags. Throws `.malformed` for a tag that exceeds the file.
    static func end(in buffer: inout MediaReadBuffer, ahead: Int64) async throws(MediaError) -> Int64 {
        var position: Int64 = 0
        for _ in 0..<16 {
            let bytes = try await buffer.view(position..<position + 10, ahead: ahead - 10)
            guard let end = end(in: bytes, at: position) else { break }
            guard end < buffer.source.length else {
                throw .malformed("ID3 tag: it exceeds the file.", offset: position)
            }
            position = end
        }
        return position
    }
}
