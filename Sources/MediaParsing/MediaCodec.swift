import CacheCore

/// Codec names of `CODECS` and `codecs` (RFC 6381).
enum MediaCodec {
    private static let audio = ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "alac", "vorbis", "mp3", "dts", "mhm1"]
    private static let video = ["avc", "hvc1", "hev1", "dvh1", "dvhe", "av01", "vp08", "vp09", "vp8", "vp9", "mp4v"]
    private static let subtitles = ["wvtt", "stpp"]

    /// The codecs of a list; at most 16.
    static func list(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: ","), maxSplits: 16).prefix(16)
            .map { FieldText.trimmed(Substring($0)) }.filter { !$0.isEmpty }.map { String($0) }
    }

    /// The kind of track for which a codec is used; nil if the name is unknown.
    static func kind(of name: Substring) -> TrackKind? {
        let name = FieldText.lowered(FieldText.trimmed(name))
        if audio.contains(where: name.hasPrefix) { return .audio }
        if video.contains(where: name.hasPrefix) { return .video }
        if subtitles.contains(where: name.hasPrefix) { return .subtitles }
        return nil
    }
}
