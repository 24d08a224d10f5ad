package import CacheCore
package import CacheEngine

extension MediaReport {
    /// The `Media` schema.
    package var json: JSON {
        switch document {
        case .index(let index): json(of: index)
        case .playlist(let playlist): json(of: playlist)
        }
    }

    private func json(of index: MediaIndex) -> JSON {
        let playable = playable
        return [
            "assetId": .string(assetID.description), "container": .string(index.container.rawValue),
            "layout": .string(index.layout.rawValue), "durationSeconds": .optional(index.duration, JSON.mediaTime),
            "tracks": .array(
                index.tracks.map { track in
                    [
                        "id": .integer(track.id), "kind": .string(track.kind.rawValue), "codec": .string(track.codec),
                        "language": .text(track.description.language), "width": .bytes(track.description.width),
                        "height": .bytes(track.description.height),
                        "keyFrames": .optional(track.keyFrameCount) { .count($0) },
                        "longestKeyFrameSeconds": .optional(track.keyFrameInterval, JSON.mediaTime),
                    ]
                }),
            "bitsPerSecond": .bytes(bitsPerSecond),
            "chapters": .array(
                index.chapters.map { ["startSeconds": .mediaTime($0.start), "title": .string($0.title)] }),
            "indexRanges": .array(
                index.indexRanges.map { range in
                    [
                        "offset": .integer(range.lowerBound), "length": .integer(range.length),
                        "cached": .bool(cached.contains(range)),
                    ]
                }),
            "playable": .timeSpans(playable), "playableUntilSeconds": playableUntil(playable),
            "notFor": players, "renditions": [], "warnings": [],
        ]
    }

    private var players: JSON { .array(notFor.map { .string($0.rawValue) }) }

    /// The end of the span at the beginning.
    private func playableUntil(_ playable: [Range<Double>]) -> JSON {
        .mediaTime(playable.first { $0.lowerBound < 0.1 }?.upperBound ?? 0)
    }

    private func json(of playlist: MediaPlaylist) -> JSON {
        let playable = playable
        let renditions = playlist.renditions.enumerated().map { index, rendition -> JSON in
            let found = self.playlist.flatMap { $0.renditions.indices.contains(index) ? $0.renditions[index] : nil }
            return [
                "id": .string(rendition.id), "kind": .string(rendition.kind.rawValue),
                "bitsPerSecond": .bytes(rendition.bitsPerSecond), "width": .bytes(rendition.width),
                "height": .bytes(rendition.height), "language": .text(rendition.language),
                "codecs": .array(rendition.codecs.map(JSON.string)),
                "segments": .optional(found?.segments) { .count($0) },
                "durationSeconds": .optional(found?.duration, JSON.mediaTime),
                "playable": .timeSpans(found?.playable ?? []),
                "error": .optional(found?.error, \.summary),
            ]
        }
        return [
            "assetId": .string(assetID.description), "container": playlist.format == .dash ? "dash" : "hls",
            "layout": "segmented",
            "durationSeconds": .optional(self.playlist?.duration ?? playlist.duration, JSON.mediaTime),
            "tracks": [], "bitsPerSecond": .null, "chapters": [], "indexRanges": [], "playable": .timeSpans(playable),
            "playableUntilSeconds": playableUntil(playable), "notFor": players, "renditions": .array(renditions),
            "warnings": .array(playlist.warnings.map { .string($0.description) }),
        ]
    }
}

extension CacheError {
    /// The error of a part of a document.
    var summary: JSON { ["code": .string(code.name), "message": .string(message)] }
}

extension JSON {
    /// A presentation time in seconds, rounded to milliseconds.
    static func mediaTime(_ seconds: Double) -> JSON { .number((seconds * 1000).rounded() / 1000) }

    /// Spans of presentation time.
    static func timeSpans(_ spans: [Range<Double>]) -> JSON {
        .array(spans.map { ["startSeconds": .mediaTime($0.lowerBound), "endSeconds": .mediaTime($0.upperBound)] })
    }
}
