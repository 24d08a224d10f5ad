import CacheCore

/// Parser for HLS playlists (RFC 8216 and draft-pantos-hls-rfc8216bis).
package enum HLSParser {
    /// Parses a multivariant or media playlist. The time and memory are linear in the length of the text.
    ///
    /// A media playlist has one rendition, of kind other, because the playlist does not name its tracks. Variant
    /// streams with audio and video are of kind other, too. A media playlist is live unless it has `EXT-X-ENDLIST` or
    /// the type `VOD`. Tags of Low-Latency HLS and unknown tags are ignored. Up to ``warningLimit`` malformed lines are
    /// skipped; the playlist lists them.
    ///
    /// Throws `.unsupported` if the text is not a playlist, or needs another document (`EXT-X-SKIP`); `.malformed` with
    /// the name of the tag at the offset of its line if more lines are malformed; `.tooLarge` for "playlist", "segments" or
    /// "renditions".
    package static func playlist(_ text: [UInt8], limits: MediaLimits) throws(MediaError) -> MediaPlaylist {
        guard text.count <= limits.playlistBytes else { throw .tooLarge("playlist") }
        let content = XMLReader.withoutByteOrderMark(text)
        guard content.starts(with: "#EXTM3U".utf8), content.dropFirst(7).first.map(MediaText.isSpace) ?? true else {
            throw MediaText.unknownFormat(text)
        }
        var lines = HLSLines(content)
        var reader = Reader(limits: limits)
        var warnings: [MediaPlaylist.Warning] = []
        while true {
            do throws(MediaError) {
                guard let line = try lines.next() else { break }
                try reader.read(line)
            } catch .malformed(let cause, let offset) {
                guard warnings.count < warningLimit else { throw .malformed(cause, offset: offset) }
                warnings.append(.init(line: lines.number, cause: cause))
            }
        }
        var playlist = try reader.playlist(end: Int64(text.count))
        playlist.warnings = warnings
        return playlist
    }

    /// The largest number of malformed lines. ffmpeg skips any number; a text with more is hardly a playlist.
    private static let warningLimit = 9
}

extension HLSParser {
    /// Collects the contents of both kinds of playlists and decides the kind at the end.
    private struct Reader {
        private var variables: HLSVariables
        private var multivariant: HLSMultivariant
        private var media: HLSMedia
        private var isMultivariant = false
        private var isMedia = false
        private var hasEnd = false
        private var isVOD = false

        init(limits: MediaLimits) {
            variables = HLSVariables(limits: limits)
            multivariant = HLSMultivariant(limits: limits)
            media = HLSMedia(limits: limits)
        }

        mutating func read(_ line: HLSLine) throws(MediaError) {
            switch line {
            case .tag(let tag): try read(tag)
            case .uri(let bytes):
                let uri = try variables.substituted(bytes)
                if multivariant.expectsURI {
                    try multivariant.add(uri: uri)
                } else {
                    isMedia = true
                    try media.add(uri: uri, offset: Int64(bytes.startIndex))
                }
            }
        }

        /// Applies a tag. Tags of another kind of playlist are errors if they define segments or renditions.
        private mutating func read(_ tag: HLSTag) throws(MediaError) {
            switch tag.name {
            case "EXT-X-DEFINE": try variables.define(tag)
            case "EXT-X-STREAM-INF", "EXT-X-MEDIA":
                guard !isMedia else { throw tag.malformed }
                isMultivariant = true
                if tag.name == "EXT-X-MEDIA" {
                    try multivariant.media(tag, variables: &variables)
                } else {
                    try multivariant.streamInf(tag, variables: &variables)
                }
            case "EXT-X-SERVER-CONTROL": try media.serverControl(tag, variables: &variables)
            case "EXTINF", "EXT-X-BYTERANGE", "EXT-X-GAP", "EXT-X-MAP", "EXT-X-KEY", "EXT-X-TARGETDURATION",
                "EXT-X-SKIP":
                guard !isMultivariant else { throw tag.malformed }
                isMedia = true
                try readMedia(tag)
            case "EXT-X-MEDIA-SEQUENCE", "EXT-X-DISCONTINUITY-SEQUENCE": _ = try tag.number()
            case "EXT-X-PLAYLIST-TYPE":
                let type = String(decoding: tag.value, as: UTF8.self).uppercased()
                guard type == "VOD" || type == "EVENT" else { throw tag.malformed }
                isVOD = type == "VOD"
            case "EXT-X-ENDLIST": hasEnd = true
            default: break
            }
        }

        private mutating func readMedia(_ tag: HLSTag) throws(MediaError) {
            switch tag.name {
            case "EXTINF": try media.extinf(tag)
            case "EXT-X-BYTERANGE": try media.byteRange(tag)
            case "EXT-X-GAP": media.gap()
            case "EXT-X-MAP": try media.map(tag, variables: &variables)
            case "EXT-X-KEY": try media.key(tag, variables: &variables)
            case "EXT-X-SKIP": throw .unsupported("EXT-X-SKIP")
            default: try media.target(tag)
            }
        }

        /// The playlist after its last line, at the offset `end`.
        func playlist(end: Int64) throws(MediaError) -> MediaPlaylist {
            let renditions = multivariant.finished()
            if isMultivariant { return MediaPlaylist(format: .hlsMultivariant, renditions: renditions) }
            guard isMedia else { throw .malformed("EXT-X-TARGETDURATION", offset: end) }
            let isLive = !hasEnd && !isVOD
            var rendition = MediaPlaylist.Rendition(id: "", kind: .other)
            rendition.segments = media.segments
            var playlist = MediaPlaylist(
                format: .hlsMedia, isLive: isLive, duration: isLive ? nil : media.duration, renditions: [rendition])
            guard isLive else { return playlist }
            playlist.holdBack = media.holdBack
            playlist.updateInterval = media.targetDuration.map {
                max(.seconds($0 / 2), Generation.leastUpdateInterval)
            }
            return playlist
        }
    }
}
