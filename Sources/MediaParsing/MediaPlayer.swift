import CacheCore

/// A player whose reads are measured by `make media`.
package enum MediaPlayer: String, Hashable, Sendable, CaseIterable { case ffmpeg, mpv, chromium, gstreamer }

extension MediaIndex {
    /// Smaller files with the index at their end are read in order by GStreamer (`qtdemux`).
    private static let seekedLength: Int64 = 4 << 20

    /// The players that need other bytes than those of a span of time.
    ///
    /// - Parameter length: the length of the file in bytes; nil: unknown.
    package func playersThatReadMore(length: Int64?) -> [MediaPlayer] {
        switch container {
        // GStreamer seeks to a position that it computes from the bit rate of the bytes that it has read so far.
        case .mpegTS: [.gstreamer]
        case .mp4 where layout == .tailIndex && (length ?? .max) <= Self.seekedLength: [.gstreamer]
        case .mp4, .matroska, .mp3: []
        }
    }
}

extension MediaPlaylist {
    /// The players that need other files than those of the chosen renditions in a span of time.
    package var playersThatReadMore: [MediaPlayer] {
        guard format != .dash else { return [] }
        let hasSound = renditions.contains { $0.kind == .audio && !$0.group.isEmpty && $0.playlist != nil }
        let variants = renditions.filter { $0.group.isEmpty && $0.playlist != nil }
        // ffmpeg and mpv open all variant streams. Chromium abandons a playlist when a segment ahead cannot be fetched,
        // GStreamer one with sound of its own, of which it fetches many segments ahead.
        return (variants.count > 1 ? [.ffmpeg, .mpv] : []) + [.chromium] + (hasSound ? [.gstreamer] : [])
    }
}
