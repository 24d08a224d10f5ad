import CacheCore
import MediaParsing
import Testing

/// Parses an HLS playlist with the default limits.
func hls(_ text: String, limits: MediaLimits = MediaLimits()) throws -> MediaPlaylist {
    try HLSParser.playlist(Array(text.utf8), limits: limits)
}

/// Parses a DASH manifest with the default limits.
func dash(_ text: String, limits: MediaLimits = MediaLimits(), now: Double? = nil) throws -> MediaPlaylist {
    try DASHParser.manifest(Array(text.utf8), limits: limits, now: now)
}

/// A static manifest of one period of 10 s with the given content of its adaptation set.
func mpd(_ content: String, attributes: String = #"type="static" mediaPresentationDuration="PT10S""#) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" \(attributes)><Period><AdaptationSet mimeType="video/mp4">
    \(content)
    </AdaptationSet></Period></MPD>
    """
}

/// The error as text, because `MediaError` is not equatable: `malformed(EXTINF, 8)`; nil: no error.
func failure(_ parse: () throws -> MediaPlaylist) -> String? {
    do {
        _ = try parse()
        return nil
    } catch let error as MediaError {
        switch error {
        case .unsupported(let text): return "unsupported(\(text))"
        case .malformed(let text, let offset): return "malformed(\(text), \(offset))"
        case .tooLarge(let text): return "tooLarge(\(text))"
        case .unreadable: return "unreadable"
        }
    } catch {
        return "\(error)"
    }
}

/// The name in a `malformed` error; nil: no error or another one.
func malformed(_ parse: () throws -> MediaPlaylist) -> String? {
    guard let text = failure(parse), text.hasPrefix("malformed(") else { return nil }
    return text.dropFirst(10).split(separator: ",").first.map(String.init)
}

/// A video rendition with a bit rate.
func rendition(
    _ id: String, _ kind: TrackKind = .video, rate: Int64? = nil, times: [Range<Double>] = [0..<10]
) -> MediaPlaylist.Rendition {
    var rendition = MediaPlaylist.Rendition(id: id, kind: kind, bitsPerSecond: rate)
    rendition.segments = times.map {
        MediaPlaylist.Segment(time: $0, resource: MediaPlaylist.Resource(uri: "\(id)-\($0.lowerBound)"))
    }
    return rendition
}
