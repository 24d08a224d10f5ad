package import CacheCore

/// The index of a media file: which bytes a player needs to open it, and which bytes contain which time.
package struct MediaIndex: Hashable, Sendable {
    /// The container format.
    package enum Container: String, Hashable, Sendable, CaseIterable { case mp4, matroska, mp3, mpegTS }

    /// Where the index is.
    package enum Layout: String, Hashable, Sendable, CaseIterable {
        /// Before the media data: an MP4 with the movie box first, or a Matroska file with its cues first.
        case headIndex
        /// Behind the media data.
        case tailIndex
        /// Distributed over the file: fragmented MP4 (ISO/IEC 14496-12 §8.8).
        case fragmented
        /// There is none; positions are computed from the bit rate.
        case none
    }

    /// One elementary stream.
    package struct Track: Hashable, Sendable {
        /// The number of the track in the container.
        package var id: Int64
        package var kind: TrackKind
        /// The codec as the container names it, for example `avc1` or `V_VP9`.
        package var codec: String
        package var description = Description()
        /// The pieces of the track in the order of their bytes. Their times can overlap slightly.
        package var pieces: [Piece]
        /// The times from which decoding can begin, ascending, in seconds; empty: from each piece.
        package var syncTimes: [Double]

        package init(id: Int64, kind: TrackKind, codec: String, pieces: [Piece] = [], syncTimes: [Double] = []) {
            self.id = id
            self.kind = kind
            self.codec = codec
            self.pieces = pieces
            self.syncTimes = syncTimes
        }
    }

    /// Contiguous bytes of a track, of about half a second.
    package struct Piece: Hashable, Sendable {
        /// The presentation times of the piece in seconds from the beginning of the presentation.
        package var time: Range<Double>
        package var bytes: ByteRange

        package init(time: Range<Double>, bytes: ByteRange) {
            self.time = time
            self.bytes = bytes
        }
    }

    package var container: Container
    package var layout: Layout
    /// The duration of the presentation in seconds; nil: unknown.
    package var duration: Double?
    package var tracks: [Track]
    /// The bytes that a player reads before it can play anything: headers and index.
    package var indexRanges: [ByteRange]
    /// The number of bytes that players read beyond the last needed sample.
    package var slack: Int64
    /// The chapters by their start; empty: none.
    package var chapters: [Chapter] = []
    /// The media time before the first edit of a track, in seconds: mpv reads sound earlier by it.
    var editSeconds = 0.0
    /// The state that divides pieces which are longer than the time of a span, with bytes of the media data; nil: the
    /// pieces are as exact as possible.
    var refinement: Refinement?

    package init(
        container: Container, layout: Layout, duration: Double? = nil, tracks: [Track] = [],
        indexRanges: [ByteRange] = [], slack: Int64 = 64 << 10
    ) {
        self.container = container
        self.layout = layout
        self.duration = duration
        self.tracks = tracks
        self.indexRanges = indexRanges
        self.slack = slack
    }
}

/// A media file as a parser sees it. The parser decides which bytes it reads; each read can cause an upstream request.
package struct MediaSource: Sendable {
    /// The length of the file in bytes.
    package let length: Int64
    /// Returns exactly the bytes of a range; it lies within the file.
    package let read: @Sendable (ByteRange) async throws(MediaError) -> [UInt8]
    /// Makes the bytes of a range present with as few requests as possible, so that reads of them cause none.
    package let fetch: @Sendable (ByteRange) async throws(MediaError) -> Void

    package init(
        length: Int64, read: @escaping @Sendable (ByteRange) async throws(MediaError) -> [UInt8],
        fetch: @escaping @Sendable (ByteRange) async throws(MediaError) -> Void = { _ in }
    ) {
        self.length = length
        self.read = read
        self.fetch = fetch
    }
}

/// The reason why a media file has no index.
package enum MediaError: Error, Sendable {
    /// The file is no media file of a known format, or of a variant that cannot be indexed. The text names the first
    /// bytes, or the box or feature.
    case unsupported(String)
    /// The file contradicts its format. The text names the box or element at the byte `offset`.
    case malformed(String, offset: Int64)
    /// The index exceeds a limit, which the text names.
    case tooLarge(String)
    /// Bytes could not be read.
    case unreadable(CacheError)
}

/// The limits for parsers of media files and playlists.
package struct MediaLimits: Hashable, Sendable {
    /// The largest index of a media file in bytes.
    package var indexBytes = 64 << 20
    /// The deepest nesting of boxes or elements.
    package var depth = 10
    /// The largest number of pieces of all tracks together; tables with more samples are merged into longer pieces.
    package var pieces = 200_000
    /// The largest playlist in bytes.
    package var playlistBytes = 8 << 20
    /// The largest number of segments of a playlist.
    package var segments = 50_000
    /// The largest number of upstream requests for the index of a file. A fragmented file without `sidx` needs one for
    /// each large fragment.
    package var fragments = 4_096
    /// The largest number of renditions of a playlist.
    package var renditions = 64

    package init() {}
}
