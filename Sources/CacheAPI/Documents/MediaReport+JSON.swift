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
                index.tracks.map {
                    ["id": .integer($0.id), "kind": .string($0.kind.rawValue), "codec": .string($0.codec)]
                }),
            "indexRanges": .array(
                index.indexRanges.map { range in
                    [
                        "offset": .integer(range.lowerBound), "length": .integer(range.length),
                        "cached": .bool(cached.contains(range)),
                    ]
                }),
            "playable": .array(
                playable.map { ["startSeconds": .mediaTime($0.lowerBound), "endSeconds": .mediaTime($0.upperBound)] }),
            "playableUntilSeconds": .mediaTime(playable.first { $0.lowerBound < 0.1 }?.upperBound ?? 0),
            "renditions": [], "warnings": [],
        ]
    }

    private func json(of playlist: MediaPlaylist) -> JSON {
        [
            "assetId": .string(assetID.description), "container": playlist.format == .dash ? "dash" : "hls",
            "layout": "segmented", "durationSeconds": .optional(playlist.duration, JSON.mediaTime),
            "tracks": [], "indexRanges": [], "playable": [], "playableUntilSeconds": 0,
            "renditions": .array(
                playlist.renditions.map { rendition in
                    [
                        "id": .string(rendition.id), "kind": .string(rendition.kind.rawValue),
                        "bitsPerSecond": .bytes(rendition.bitsPerSecond), "segments": .count(rendition.segments.count),
                    ]
                }),
            "warnings": .array(playlist.warnings.map { .string($0.description) }),
        ]
    }
}

extension JSON {
    /// A presentation time in seconds, rounded to milliseconds.
    static func mediaTime(_ seconds: Double) -> JSON { .number((seconds * 1000).rounded() / 1000) }
}
