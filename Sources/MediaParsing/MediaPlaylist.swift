package import CacheCore

/// A playlist or manifest: HLS (RFC 8216 and draft-pantos-hls-rfc8216bis) or DASH (ISO/IEC 23009-1).
package struct MediaPlaylist: Hashable, Sendable {
    /// The format.
    package enum Format: String, Hashable, Sendable, CaseIterable {
        /// An HLS multivariant playlist; its renditions refer to media playlists.
        case hlsMultivariant
        /// An HLS media playlist; it has one rendition.
        case hlsMedia
        /// A DASH manifest.
        case dash
    }

    /// One alternative of the content: a variant stream or rendition of HLS, or a representation of DASH.
    package struct Rendition: Hashable, Sendable {
        /// The name: `NAME` or `GROUP-ID` of HLS, `id` of DASH; may be empty.
        package var id: String
        package var kind: TrackKind
        /// The peak bit rate in bits per second; nil: unknown.
        package var bitsPerSecond: Int64?
        /// The size of the picture in pixels; nil: unknown.
        package var width: Int64?
        package var height: Int64?
        /// The language (RFC 5646); nil: not stated.
        package var language: String?
        /// The codecs (RFC 6381); empty: not stated.
        package var codecs: [String] = []
        /// Groups of alternative renditions that this variant uses (`AUDIO`, `VIDEO`, `SUBTITLES` of HLS).
        package var groups: [String] = []
        /// The group that contains this rendition; empty for variant streams and DASH.
        package var group = ""
        /// Whether a player chooses the rendition of its group by default.
        package var isDefault = false
        /// The media playlist; nil if ``segments`` or ``file`` describe the rendition.
        package var playlist: String?
        /// A single file with an index of its own (SegmentBase of DASH); nil if ``segments`` describe the rendition.
        package var file: Resource?
        /// The presentation times of ``file`` in seconds, those of its period; nil: unknown.
        package var fileTime: Range<Double>?
        package var segments: [Segment] = []

        package init(id: String, kind: TrackKind, bitsPerSecond: Int64? = nil) {
            self.id = id
            self.kind = kind
            self.bitsPerSecond = bitsPerSecond
        }
    }

    /// One media segment.
    package struct Segment: Hashable, Sendable {
        /// The presentation times in seconds from the beginning of the playlist.
        package var time: Range<Double>
        package var resource: Resource
        /// The initialization section (`EXT-X-MAP`, `initialization`); nil: the segment needs none.
        package var initialization: Resource?
        /// The key to decrypt the segment; nil: it is not encrypted, or the key is not fetched over HTTP.
        package var key: Resource?

        package init(
            time: Range<Double>, resource: Resource, initialization: Resource? = nil, key: Resource? = nil
        ) {
            self.time = time
            self.resource = resource
            self.initialization = initialization
            self.key = key
        }
    }

    /// A file, or a part of one.
    package struct Resource: Hashable, Sendable {
        /// The reference as it must be resolved against the URL of the playlist (RFC 3986 §5). `BaseURL` of DASH is
        /// already applied.
        package var uri: String
        /// Nil: the whole file.
        package var range: ByteRange?

        package init(uri: String, range: ByteRange? = nil) {
            self.uri = uri
            self.range = range
        }
    }

    /// A line that was skipped.
    package struct Warning: Hashable, Sendable, CustomStringConvertible {
        /// From 1.
        package var line: Int
        /// The tag or the part of the line that is malformed.
        package var cause: String

        package init(line: Int, cause: String) {
            self.line = line
            self.cause = cause
        }

        package var description: String { "Line \(line) was skipped: \(cause) is malformed." }
    }

    package var format: Format
    /// Whether further segments will be added.
    package var isLive: Bool
    /// The duration in seconds; nil: unknown, as for live playlists and multivariant playlists.
    package var duration: Double?
    package var renditions: [Rendition]
    /// The lines that were skipped because they are malformed.
    package var warnings: [Warning] = []
    /// The distance from the live edge where a player begins, in seconds: `HOLD-BACK`, or three target durations
    /// (RFC 8216 §6.3.3, draft-pantos-hls-rfc8216bis §4.4.3.8); `suggestedPresentationDelay` of DASH. Nil: three segments,
    /// or the playlist is not live.
    package var holdBack: Double?
    /// The live edge by the clock: the seconds since `availabilityStartTime` of DASH. Nil: unknown.
    package var clockEdge: Double?

    /// The time after which a live playlist has changed: half the target duration of HLS, with which players load it
    /// again (RFC 8216 §6.3.4), or `minimumUpdatePeriod` of DASH. Nil: it does not change, or the time is unknown. At
    /// least ``Generation/leastUpdateInterval``.
    package var updateInterval: Duration?

    /// The time from the beginning of one load to the next: the target duration of HLS after a change, and half of it after
    /// none (RFC 8216 §6.3.4); `minimumUpdatePeriod` of DASH, or without it the longest duration of a segment.
    package func reloadInterval(afterChange hasChanged: Bool) -> Duration {
        guard let updateInterval else { return .seconds(max(1, longestSegment)) }
        return format == .hlsMedia && hasChanged ? updateInterval * 2 : updateInterval
    }

    /// The live edge, or the end of the last segment, in seconds; nil without segments. The edge by the clock counts if the
    /// last segment is not older than its duration.
    package var edge: Double? {
        guard let last = lastSegment else { return nil }
        guard isLive, let clockEdge else { return last.upperBound }
        return min(max(clockEdge, last.upperBound), last.upperBound + longestSegment)
    }

    /// The position where a player begins; nil unless the playlist is live and has segments. It is not behind the
    /// beginning of the last segment.
    package var liveStart: Double? {
        guard isLive, let edge, let last = lastSegment else { return nil }
        let first = renditions.lazy.compactMap { $0.segments.first?.time.lowerBound }.min() ?? 0
        return max(first, min(edge - (holdBack ?? 3 * longestSegment), last.lowerBound))
    }

    /// The times of the segment that ends last.
    private var lastSegment: Range<Double>? {
        renditions.lazy.compactMap { $0.segments.last?.time }.max { $0.upperBound < $1.upperBound }
    }

    /// The longest duration of the last segments of the renditions in seconds.
    private var longestSegment: Double {
        renditions.lazy.compactMap { $0.segments.last?.time }.map { $0.upperBound - $0.lowerBound }.max() ?? 0
    }

    package init(format: Format, isLive: Bool = false, duration: Double? = nil, renditions: [Rendition] = []) {
        self.format = format
        self.isLive = isLive
        self.duration = duration
        self.renditions = renditions
    }
}
