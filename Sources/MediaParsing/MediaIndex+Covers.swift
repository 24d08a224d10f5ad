import CacheCore

/// Cover art, which ffprobe lists as a stream: a track without media data.
extension MediaIndex {
    /// The largest number of pictures that are listed.
    static let mostCovers = 16

    /// Adds a track for each picture.
    ///
    /// - Parameter codecs: `jpeg`, `png` or `bmp`, or another format as the file names it.
    mutating func addCovers(_ codecs: [String]) {
        let first = (tracks.map(\.id).max() ?? 0) + 1
        for (index, codec) in codecs.prefix(Self.mostCovers).enumerated() {
            tracks.append(Track(id: first + Int64(index), kind: .other, codec: codec))
        }
    }
}

extension MP4Box {
    /// The formats of the pictures in a `udta` box: the `data` boxes of `meta`, `ilst`, `covr` (QuickTime File Format
    /// Specification, metadata). A damaged list ends where it cannot be read.
    var coverCodecs: [String] {
        func content(_ box: MP4Box, _ type: MP4FourCC) -> [MP4Box] {
            var (children, found) = (box.children, [MP4Box]())
            while found.count < MediaIndex.mostCovers, let child = try? children.next() {
                if child.type == type { found.append(child) }
            }
            return found
        }
        // The box `meta` of ISO/IEC 14496-12 §8.11.1 has a version and flags, that of QuickTime has not.
        let lists = content(self, "meta").flatMap { meta in
            [meta, meta.withoutVersion].compactMap(\.self).flatMap { content($0, "ilst") }
        }
        return lists.flatMap { content($0, "covr") }.flatMap { content($0, "data") }.map { data in
            switch try? data.uint32(at: 0) {
            case 13: "jpeg"
            case 14: "png"
            case 27: "bmp"
            default: "picture"
            }
        }
    }
}

extension ID3Tag {
    /// The formats of the pictures in the tag at the beginning of `bytes`, as far as their frames begin there: `APIC`
    /// (ID3v2.3 §4.15) and `PIC` (ID3v2.2 §4.15).
    static func coverCodecs(in bytes: MediaBytes) -> [String] {
        guard let end = end(in: bytes, at: 0), let version = bytes.byte(at: 3), let flags = bytes.byte(at: 5) else {
            return []
        }
        // An extended header or unsynchronisation would have to be undone; such tags are rare.
        guard (2...4).contains(version), flags & 0xC0 == 0 else { return [] }
        let (idLength, headerLength): (Int64, Int64) = version == 2 ? (3, 6) : (4, 10)
        var (position, found): (Int64, [String]) = (10, [])
        while position + headerLength < end, found.count < MediaIndex.mostCovers, bytes.byte(at: position) ?? 0 != 0,
            let stated = bytes.number(at: position + idLength, count: version == 2 ? 3 : 4)
        {
            let size = version == 4 ? (stated & 0x7F) | (stated >> 1 & 0x3F80) | (stated >> 2 & 0x1F_C000) : stated
            let content = position + headerLength
            if bytes.holds(version == 2 ? "PIC" : "APIC", at: position) {
                // A text encoding, then the media type; version 2 has three characters.
                let name = bytes.part(ByteRange(offset: content + 1, length: version == 2 ? 3 : 32)).bytes
                let text = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self).lowercased()
                found.append(
                    text.hasSuffix("png") ? "png" : text.hasSuffix("jpg") || text.hasSuffix("jpeg") ? "jpeg" : "picture"
                )
            }
            position = content + Int64(size)
        }
        return found
    }
}
