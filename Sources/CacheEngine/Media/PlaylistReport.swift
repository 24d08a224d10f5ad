package import CacheCore

/// The renditions of a playlist, and the times that play without the upstream.
package struct PlaylistReport: Sendable {
    /// One rendition, at the position of the playlist's own.
    package struct Rendition: Sendable {
        /// The number of segments, those of its media playlist included; nil if that could not be read.
        package var segments: Int?
        /// The duration in seconds; nil: unknown, or it grows.
        package var duration: Double?
        package var playable: [Range<Double>]
        /// The reason why the media playlist could not be read.
        package var error: CacheError?

        package init(
            segments: Int?, duration: Double? = nil, playable: [Range<Double>] = [], error: CacheError? = nil
        ) {
            self.segments = segments
            self.duration = duration
            self.playable = playable
            self.error = error
        }
    }

    package var renditions: [Rendition]
    /// The longest duration of a rendition in seconds; nil: unknown, or it grows.
    package var duration: Double?
    /// The times for which the files of some combination of renditions are on disk.
    package var playable: [Range<Double>]

    package init(renditions: [Rendition], duration: Double? = nil, playable: [Range<Double>] = []) {
        self.renditions = renditions
        self.duration = duration
        self.playable = playable
    }
}

/// The bytes that a player needs for a span of time.
package enum MediaNeeds: Sendable {
    /// Ranges of a media file.
    case ranges([ByteRange])
    /// Files of a playlist.
    case files([File])

    /// A file of a playlist.
    package struct File: Sendable {
        package let reference: AssetReference
        /// The presentation times that the file is needed for.
        package let time: Range<Double>
        /// Nil: the whole file.
        package let ranges: [ByteRange]?
        /// The reason why the file or its index must not be read, or could not be.
        package let error: CacheError?
    }
}
