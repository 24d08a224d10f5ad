/// Parser for the index of Matroska and WebM files (RFC 9559 and RFC 8794).
///
/// Reads: the first 64 KiB; the elements that SeekHead names behind the clusters, mostly in one read of the tail; and
/// headers of clusters if the cues are missing or sparse (``MatroskaClusters``).
package enum MatroskaParser {
    /// The index of a file. The pieces are those of clusters, which all tracks share; the sync times are the cues.
    ///
    /// `indexRanges` has the elements before the first cluster, and all elements behind it that SeekHead names:
    /// ffmpeg reads Tags, Chapters and Attachments when it opens a file. Without usable cues the layout is `.none`.
    ///
    /// Throws `.unsupported` for another EBML document and for a file with too many clusters to index it without cues.
    package static func index(
        of source: MediaSource, limits: MediaLimits = MediaLimits()
    ) async throws(MediaError) -> MediaIndex {
        var file = try await MatroskaFile(source: source, limits: limits)
        try await file.readHeader()
        try await file.readTail()
        guard !file.header.tracks.isEmpty else {
            throw .malformed("Segment without Tracks", offset: file.header.segment.lowerBound)
        }
        let end = file.clustersEnd
        let layout: MediaIndex.Layout =
            file.header.cues.isEmpty ? .none : file.cuesAreFirst ? .headIndex : .tailIndex
        let points: [MatroskaClusters.Point]
        if file.header.cues.isEmpty {
            points = try await MatroskaClusters.walk(&file, until: end)
        } else {
            points = try await MatroskaClusters.refine(MatroskaClusters.cued(file), &file, until: end)
        }
        let duration = file.isTruncated ? nil : file.header.duration
        var index = MediaIndex(container: .matroska, layout: layout, duration: duration)
        index.indexRanges = file.indexRanges.runs
        let share = max(1, limits.pieces / file.header.tracks.count)
        let header = file.header
        let video = header.tracks.first { $0.kind == .video }
        var videoTimes = header.cues.isEmpty ? points.compactMap(\.keyTime) : []
        if let video, videoTimes.isEmpty { videoTimes = cueTimes(of: video.id, header) }
        videoTimes = ascending(videoTimes, limit: share)
        let pieces = [false, true].map { precedesVideo in
            MatroskaClusters.pieces(
                points, end: end, duration: index.duration, limit: share, precedesVideo: precedesVideo)
        }
        index.tracks = header.tracks.map { track in
            var track = track
            track.pieces = pieces[track.kind == .video || videoTimes.isEmpty ? 0 : 1]
            // Players seek all tracks to a cue of the video; cues of subtitles and audio are irrelevant then.
            track.syncTimes =
                track.id == video?.id || !videoTimes.isEmpty
                ? videoTimes : ascending(cueTimes(of: track.id, header), limit: share)
            return track
        }
        return index
    }

    /// The times of the cues of a track; of all tracks if this one has none.
    private static func cueTimes(of track: Int64, _ header: MatroskaHeader) -> [Double] {
        let own = header.cues.filter { $0.track == track }
        return (own.isEmpty ? header.cues : own).map { header.seconds($0.time) }
    }

    /// The times in ascending order without duplicates; some are omitted beyond `limit`.
    private static func ascending(_ times: [Double], limit: Int) -> [Double] {
        var result: [Double] = []
        for time in times.sorted() where result.last != time { result.append(time) }
        let step = (result.count + limit - 1) / limit
        return step <= 1 ? result : stride(from: 0, to: result.count, by: step).map { result[$0] }
    }
}
