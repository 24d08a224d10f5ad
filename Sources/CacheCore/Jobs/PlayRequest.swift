/// The part of a media asset that a prefetch item makes playable.
package struct PlayRequest: Hashable, Sendable {
    /// What an item fetches if its asset has no usable index.
    package enum Otherwise: String, Hashable, Sendable, ChoiceCodable {
        /// Nothing: the item fails.
        case fail
        /// The first ``headBytes`` bytes.
        case head
        case whole
    }

    /// The presentation time in seconds. A negative start counts from the end of the media, or from the live edge.
    package var time: Range<Double>
    /// Whether the client has named the start. Otherwise it is the one of a player: 0, or the position in a live playlist.
    package var hasStart: Bool
    /// The kinds of tracks; nil: all.
    package var kinds: Set<TrackKind>?
    /// The renditions of a playlist.
    package var renditions: RenditionChoice
    /// Whether keys of encrypted segments are fetched too.
    package var includesKeys: Bool
    package var otherwise: Otherwise
    /// Whether a playlist is followed from the start on until its end: the time has no end of its own.
    package var isLive: Bool

    package init(
        time: Range<Double>, hasStart: Bool = true, kinds: Set<TrackKind>? = nil,
        renditions: RenditionChoice = .lowest, includesKeys: Bool = true, otherwise: Otherwise = .fail,
        isLive: Bool = false
    ) {
        self.isLive = isLive
        self.time = time
        self.hasStart = hasStart
        self.kinds = kinds
        self.renditions = renditions
        self.includesKeys = includesKeys
        self.otherwise = otherwise
    }

    /// The span in media with this end in seconds; nil: unknown, or that of a playlist which refers to other playlists.
    ///
    /// - Parameter liveStart: the position where a player begins with a live playlist; nil: the media is not live.
    /// - Returns: the requested span if its start counts from an unknown end.
    package func span(end: Double?, liveStart: Double? = nil) -> Range<Double> {
        let start = hasStart ? time.lowerBound : liveStart ?? 0
        let known = end.flatMap { $0.isFinite ? $0 : nil }
        let beginning = start < 0 ? known.map { max(0, $0 + start) } ?? start : start
        return beginning..<beginning + (time.upperBound - time.lowerBound)
    }

    /// The largest start and the longest duration in seconds: ten years.
    package static let maxSeconds = 315_360_000.0

    /// The request of a live playlist that is followed from the position of a player on.
    package static let live = PlayRequest(time: 0..<maxSeconds, hasStart: false, isLive: true)

    /// The number of bytes that ``Otherwise/head`` fetches.
    package static let headBytes: Int64 = 2 << 20
}

extension Range<Double> {
    /// Throws `.outOfRange` if this time span in seconds begins behind the end of media of this duration, or counts from
    /// an unknown end.
    package func checkBegins(within duration: Double?) throws(CacheError) {
        guard lowerBound >= 0 else {
            throw CacheError(.outOfRange, "The requested time counts from the end, and the media states no duration.")
        }
        guard let duration, lowerBound >= duration else { return }
        throw CacheError(.outOfRange, "The requested time begins behind the end: the media has \(duration) seconds.")
    }
}

/// What a prefetch item by time found in its asset.
package struct PlayResult: Hashable, Sendable {
    /// The format: a ``MediaIndex/Container``, `hls` or `dash`; nil: the asset has no usable index.
    package var container: String?
    /// A ``MediaIndex/Layout``, or `segmented`.
    package var layout: String?
    /// The duration in seconds; nil: unknown.
    package var duration: Double?
    /// The start of the span, if the media determined it; nil: that of the request.
    package var start: Double?
    /// The seconds from the start that play without the upstream.
    package var playableSeconds: Double

    package init(
        container: String?, layout: String?, duration: Double?, start: Double? = nil, playableSeconds: Double = 0
    ) {
        self.container = container
        self.layout = layout
        self.duration = duration
        self.start = start
        self.playableSeconds = playableSeconds
    }
}

extension RenditionChoice {
    /// The form of queries and of the catalog: `lowest`, `first`, `all`, the largest number of bits per second, or the form
    /// of a ``RenditionFilter``.
    package var text: String {
        switch self {
        case .lowest: "lowest"
        case .first: "first"
        case .all: "all"
        case .maxBitsPerSecond(let rate): String(rate)
        case .matching(let filter): filter.description
        }
    }

    /// Nil if the text has another form.
    package init?(_ text: String) {
        switch text {
        case "lowest": self = .lowest
        case "first": self = .first
        case "all": self = .all
        default:
            if let filter = RenditionFilter(text) {
                self = .matching(filter)
                return
            }
            guard let rate = Int64(text), rate > 0 else { return nil }
            self = .maxBitsPerSecond(rate)
        }
    }
}
