/// A format of media files or playlists that has a parser.
package enum MediaFormat: String, Hashable, Sendable, CaseIterable {
    case mp4, matroska, mp3, mpegTS, hls, dash

    /// The format that the media type names, else the extension of the path; nil: neither names one.
    ///
    /// - Parameters:
    ///   - contentType: the value of `Content-Type`, with or without parameters.
    ///   - path: the path of the file; a query is ignored.
    package static func named(contentType: String?, path: String) -> MediaFormat? {
        contentType.flatMap(named(byMediaType:)) ?? named(byExtensionOf: path)
    }

    /// Whether the media type, else the extension of the path, is that of a playlist or manifest.
    package static func isPlaylist(contentType: String?, path: String) -> Bool {
        let named = named(contentType: contentType, path: path)
        return named == .hls || named == .dash
    }

    private static func named(byMediaType type: String) -> MediaFormat? {
        switch type.prefix(while: { $0 != ";" }).filter({ $0 != " " && $0 != "\t" }).lowercased() {
        case "video/mp4", "audio/mp4", "application/mp4", "video/quicktime", "video/x-m4v", "audio/x-m4a",
            "video/iso.segment", "audio/iso.segment", "video/3gpp", "audio/3gpp":
            .mp4
        case "video/webm", "audio/webm", "video/matroska", "audio/matroska", "video/x-matroska", "audio/x-matroska":
            .matroska
        case "audio/mpeg", "audio/mp3", "audio/x-mpeg", "audio/x-mp3": .mp3
        case "video/mp2t", "video/vnd.dlna.mpeg-tts": .mpegTS
        case "application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl", "audio/x-mpegurl": .hls
        case "application/dash+xml": .dash
        default: nil
        }
    }

    private static func named(byExtensionOf path: String) -> MediaFormat? {
        let name = path.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard let dot = name.lastIndex(of: ".") else { return nil }
        return switch name[name.index(after: dot)...].lowercased() {
        case "mp4", "m4v", "m4a", "m4s", "mov", "cmfv", "cmfa", "cmft", "3gp", "3g2", "f4v": .mp4
        case "mkv", "mka", "mks", "mk3d", "webm", "weba": .matroska
        case "mp3", "mp2", "mpga": .mp3
        case "ts", "mts", "m2ts", "m2t": .mpegTS
        case "m3u8", "m3u": .hls
        case "mpd": .dash
        default: nil
        }
    }
}
