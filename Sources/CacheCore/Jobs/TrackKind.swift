/// The kind of a track of a media file, or of a rendition of a playlist.
package enum TrackKind: String, Hashable, Sendable, ChoiceCodable { case video, audio, subtitles, other }
