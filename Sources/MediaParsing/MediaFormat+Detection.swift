package import CacheCore

extension MediaFormat {
    /// The format of a file: by its first bytes, else by its media type, else by the extension of its path.
    ///
    /// - Parameters:
    ///   - head: the first bytes; 4 KiB are enough for all formats without an ID3 tag.
    ///   - contentType: the value of `Content-Type`, with or without parameters.
    ///   - path: the path of the file; a query is ignored.
    /// - Returns: nil if nothing names a format.
    package static func detect(head: [UInt8], contentType: String?, path: String) -> MediaFormat? {
        let named = named(contentType: contentType, path: path)
        return magic(head, named: named) ?? named
    }

    /// The name of a format that has no parser, by the first bytes; nil: unknown.
    package static func unindexed(head: [UInt8]) -> String? {
        let bytes = MediaBytes(offset: 0, bytes: head[...])
        if bytes.holds("fLaC", at: 0) { return "FLAC" }
        if bytes.holds("OggS", at: 0) { return "Ogg" }
        if bytes.holds("RIFF", at: 0) { return bytes.holds("WAVE", at: 8) ? "WAV" : "RIFF" }
        // The syncword of ADTS with layer 0 (ISO/IEC 13818-7 §6.2).
        return bytes.number(at: 0, count: 2).map { $0 & 0xFFF6 } == 0xFFF0 ? "ADTS" : nil
    }

    /// The format by the first bytes. An ID3 tag can precede MP3 and MPEG-TS: if `head` ends inside the tag, `named`
    /// decides.
    private static func magic(_ head: [UInt8], named: MediaFormat?) -> MediaFormat? {
        let bytes = MediaBytes(offset: 0, bytes: head[...])
        if bytes.number(at: 0, count: 4) == UInt64(MatroskaID.ebml) { return .matroska }
        if isISOBaseMedia(bytes) { return .mp4 }
        if let format = text(bytes) { return format }
        let tag = ID3Tag.end(in: bytes, at: 0)
        if TransportStreamGrid.begins(bytes, at: tag ?? 0) { return .mpegTS }
        if let tag, tag >= bytes.end { return named == .mpegTS ? .mpegTS : .mp3 }
        let start = tag ?? 0
        if let frame = MP3FrameHeader(bytes, at: start), let next = MP3FrameHeader(bytes, at: start + frame.length),
            next.continues(frame)
        {
            return .mp3
        }
        return nil
    }

    /// Whether the bytes begin with a box that can be the first one of a file or segment (ISO/IEC 14496-12 §4.2).
    private static func isISOBaseMedia(_ bytes: MediaBytes) -> Bool {
        guard let size = bytes.number(at: 0, count: 4), size >= 8 || size < 2 else { return false }
        let types: [StaticString] = ["ftyp", "styp", "moov", "moof", "mdat", "sidx", "free", "skip", "wide", "pnot"]
        return types.contains { bytes.holds($0, at: 4) }
    }

    /// The format of a playlist, after a byte order mark: `#EXTM3U` (RFC 8216 §4.3.1.1), or XML with `<MPD`.
    private static func text(_ bytes: MediaBytes) -> MediaFormat? {
        var start: Int64 = bytes.number(at: 0, count: 3) == 0xEFBBBF ? 3 : 0
        if bytes.holds("#EXTM3U", at: start) { return .hls }
        while let byte = bytes.byte(at: start), [0x09, 0x0A, 0x0D, 0x20].contains(byte) { start += 1 }
        guard bytes.byte(at: start) == UInt8(ascii: "<") else { return nil }
        let end = min(bytes.end, start + 4096)
        return (start..<max(start, end)).contains { bytes.holds("<MPD", at: $0) } ? .dash : nil
    }
}
