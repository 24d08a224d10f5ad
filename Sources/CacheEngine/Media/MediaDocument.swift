import CacheCore
package import MediaParsing

/// A parsed media file or playlist.
package enum MediaDocument: Sendable {
    case index(MediaIndex)
    case playlist(MediaPlaylist)

    /// The length of the first request for media: most indices at the head are in it.
    static let openingBytes: Int64 = 64 << 10
    /// The number of bytes that the format is detected from.
    private static let headBytes: Int64 = 4096

    /// Parses the media of `source`, whose format is detected from its first bytes, its media type and its path. `now`: the
    /// time when the segments of a live manifest are available.
    static func parsed(
        _ source: MediaSource, contentType: String?, path: String, limits: MediaLimits, now: Timestamp
    ) async throws(MediaError) -> MediaDocument {
        let head = try await source.read(0..<min(headBytes, source.length))
        switch MediaFormat.detect(head: head, contentType: contentType, path: path) {
        case .mp4: return .index(try await MP4Parser.index(of: source, limits: limits))
        case .matroska: return .index(try await MatroskaParser.index(of: source, limits: limits))
        case .mp3: return .index(try await MP3Parser.index(of: source, limits: limits))
        case .mpegTS: return .index(try await TransportStreamParser.index(of: source, limits: limits))
        case .hls: return .playlist(try HLSParser.playlist(try await text(of: source, limits), limits: limits))
        case .dash:
            let text = try await text(of: source, limits)
            return .playlist(
                try DASHParser.manifest(text, limits: limits, now: Double(now.milliseconds) / 1000))
        case nil:
            let name = MediaFormat.unindexed(head: head).map { "\($0) has no index" } ?? "no known format"
            throw .unsupported(
                "\(name): the file begins with \(head.prefix(8).hexadecimal); an item with \"otherwise\": \"whole\" "
                    + "fetches all of it")
        }
    }

    /// Whether the document depends on the time when it was parsed.
    var isMomentary: Bool {
        if case .playlist(let playlist) = self { playlist.clockEdge != nil } else { false }
    }

    /// The approximate memory of the document in bytes.
    var byteCount: Int {
        switch self {
        case .index(let index):
            index.tracks.reduce(256 + 320 * index.chapters.count + index.refinementBytes) {
                $0 + 40 * $1.pieces.count + 8 * $1.syncTimes.count + 128
            }
        // Most URIs of segments share their storage with the playlist or are short.
        case .playlist(let playlist): playlist.renditions.reduce(256) { $0 + 256 * $1.segments.count + 512 }
        }
    }

    /// All bytes of a playlist.
    private static func text(of source: MediaSource, _ limits: MediaLimits) async throws(MediaError) -> [UInt8] {
        guard source.length <= Int64(limits.playlistBytes) else { throw .tooLarge("playlist") }
        return try await source.read(0..<source.length)
    }
}

extension MediaIndex {
    /// The result of an item by time, before its bytes are fetched.
    func result(from time: Range<Double>) -> PlayResult {
        PlayResult(
            container: container.rawValue, layout: layout.rawValue, duration: duration, start: time.lowerBound)
    }
}

extension MediaPlaylist {
    /// As ``MediaIndex/result(from:)``.
    func result(from time: Range<Double>) -> PlayResult {
        PlayResult(
            container: format == .dash ? "dash" : "hls", layout: "segmented", duration: duration,
            start: time.lowerBound)
    }
}

extension PlayRequest {
    /// The request with the span that a playlist determines. A multivariant playlist leaves that to its media playlists.
    ///
    /// Throws `.outOfRange` if the playlist ends before the span, or has no rendition with the required properties.
    func resolved(in playlist: MediaPlaylist) throws(CacheError) -> PlayRequest {
        if case .matching(let filter) = renditions, playlist.selected(renditions).isEmpty {
            throw CacheError(
                .outOfRange, "No rendition of the playlist matches \(filter). There are: \(playlist.choices).")
        }
        guard playlist.format != .hlsMultivariant else { return self }
        var resolved = self
        resolved.time = span(end: playlist.duration ?? playlist.edge, liveStart: playlist.liveStart)
        resolved.hasStart = true
        try resolved.time.checkBegins(within: playlist.duration)
        return resolved
    }
}

extension Generation {
    /// Throws `.upstreamRefused` if the content is that of an error response.
    func checkSucceeded() throws(CacheError) {
        guard let status = passedStatus, status >= 400 else { return }
        throw CacheError(.upstreamRefused(status: status), "The upstream answered with status \(status).")
    }
}

extension MediaError {
    /// The error for clients.
    var cacheError: CacheError {
        switch self {
        case .unsupported(let what): CacheError(.unsupportedMedia, "The media cannot be indexed: \(what).")
        case .malformed(let what, let offset):
            CacheError(.malformedMedia, "The media contradicts its format: \(what), at byte \(offset).")
        case .tooLarge(let what): CacheError(.mediaIndexTooLarge, "The media index exceeds a limit: \(what).")
        case .unreadable(let error): error
        }
    }
}
