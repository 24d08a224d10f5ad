import CacheCore
package import CacheEngine
import MediaParsing

/// The `Media` schema.
package struct MediaDocument: Codable {
    struct Track: Codable {
        var id: Int64
        var kind, codec: String
        var language: String?
        var width, height: Int64?
        var keyFrames: Int?
        var longestKeyFrameSeconds: Double?
    }

    struct Chapter: Codable {
        var startSeconds: Double
        var title: String
    }

    struct IndexRange: Codable {
        var offset, length: Int64
        var cached: Bool
    }

    /// A span of presentation time.
    struct TimeSpan: Codable {
        var startSeconds, endSeconds: Double
    }

    struct Rendition: Codable {
        var id, kind: String
        var bitsPerSecond, width, height: Int64?
        var language: String?
        var codecs: [String]
        var segments: Int?
        var durationSeconds: Double?
        var playable: [TimeSpan]
        var error: RecordedErrorDocument?
    }

    var assetId: AssetID
    var container, layout: String
    var durationSeconds: Double?
    var tracks: [Track] = []
    var bitsPerSecond: Int64?
    var chapters: [Chapter] = []
    var indexRanges: [IndexRange] = []
    var playable: [TimeSpan]
    /// The end of the playable span at the beginning.
    var playableUntilSeconds: Double
    var notFor: [String]
    var renditions: [Rendition] = []
    var warnings: [String] = []
}

extension MediaDocument {
    package init(_ report: MediaReport) {
        let playable = report.playable
        let (container, layout, duration) =
            switch report.document {
            case .index(let index): (index.container.rawValue, index.layout.rawValue, index.duration)
            case .playlist(let playlist):
                (
                    playlist.format == .dash ? "dash" : "hls", "segmented",
                    report.playlist?.duration ?? playlist.duration
                )
            }
        self.init(
            assetId: report.assetID, container: container, layout: layout, durationSeconds: duration?.mediaTime,
            playable: playable.map(TimeSpan.init),
            playableUntilSeconds: (playable.first { $0.lowerBound < 0.1 }?.upperBound ?? 0).mediaTime,
            notFor: report.notFor.map(\.rawValue))
        switch report.document {
        case .index(let index): add(index, of: report)
        case .playlist(let playlist):
            renditions = playlist.renditions.enumerated().map { index, rendition in
                let found = report.playlist.flatMap {
                    $0.renditions.indices.contains(index) ? $0.renditions[index] : nil
                }
                return Rendition(
                    id: rendition.id, kind: rendition.kind.rawValue, bitsPerSecond: rendition.bitsPerSecond,
                    width: rendition.width, height: rendition.height, language: rendition.language,
                    codecs: rendition.codecs, segments: found?.segments, durationSeconds: found?.duration?.mediaTime,
                    playable: (found?.playable ?? []).map(TimeSpan.init),
                    error: found?.error.map(RecordedErrorDocument.init))
            }
            warnings = playlist.warnings.map(\.description)
        }
    }

    private mutating func add(_ index: MediaIndex, of report: MediaReport) {
        tracks = index.tracks.map { track in
            Track(
                id: track.id, kind: track.kind.rawValue, codec: track.codec, language: track.description.language,
                width: track.description.width, height: track.description.height, keyFrames: track.keyFrameCount,
                longestKeyFrameSeconds: track.keyFrameInterval?.mediaTime)
        }
        bitsPerSecond = report.bitsPerSecond
        chapters = index.chapters.map { Chapter(startSeconds: $0.start.mediaTime, title: $0.title) }
        indexRanges = index.indexRanges.map { range in
            IndexRange(offset: range.lowerBound, length: range.length, cached: report.cached.contains(range))
        }
    }
}

extension MediaDocument.TimeSpan {
    fileprivate init(_ span: Range<Double>) {
        self.init(startSeconds: span.lowerBound.mediaTime, endSeconds: span.upperBound.mediaTime)
    }
}
