import CacheCore

/// Parser for the index of Matroska and WebM files (RFC 9559 and RFC 8794).
///
/// Reads: the first 64 KiB, and the elements that SeekHead names behind the clusters, mostly in one read of the tail.
/// ``MatroskaMap`` reads clusters of a span if the cues are missing or sparse.
package enum MatroskaParser {
    /// The index of a file. The pieces are those of clusters, which all tracks share; the sync times are the cues.
    ///
    /// `indexRanges` has the elements before the first cluster, and all elements behind it that SeekHead names:
    /// ffmpeg reads Tags, Chapters and Attachments when it opens a file. Without usable cues the layout is `.none`.
    ///
    /// Times count from the first block: a file that was split begins later, and sound can precede its cluster.
    ///
    /// Throws `.unsupported` for another EBML document, and `.malformed` for a file without a cluster.
    package static func index(
        of source: MediaSource, limits: MediaLimits = MediaLimits()
    ) async throws(MediaError) -> MediaIndex {
        var file = try await MatroskaFile(source: source, limits: limits)
        try await file.readHeader()
        try await file.readTail()
        guard !file.header.tracks.isEmpty else {
            throw .malformed("Segment without Tracks", offset: file.header.segment.lowerBound)
        }
        let header = file.header
        let isCued = !header.cues.isEmpty
        let video = header.tracks.first { $0.kind == .video }
        let clock = MatroskaClock(
            secondsPerTick: header.secondsPerTick, start: try await file.firstTime(), video: video?.id,
            audio: Set(header.tracks.lazy.filter { $0.kind == .audio }.map(\.id)))
        let share = max(1, limits.pieces / header.tracks.count)
        let map = MatroskaMap(
            cued(file, clock), end: file.clustersEnd, clock: clock, isCued: isCued,
            duration: file.isTruncated ? nil : header.duration, limit: share)
        var index = MediaIndex(
            container: .matroska, layout: !isCued ? .none : file.cuesAreFirst ? .headIndex : .tailIndex)
        index.indexRanges = file.indexRanges.runs
        index.tracks = header.tracks
        index.chapters = header.chapters
        // Players seek all tracks to a cue of the video; cues of subtitles and audio are irrelevant then.
        for track in index.tracks.indices where isCued {
            index.tracks[track].syncTimes = ascending(
                cueTimes(of: (video ?? index.tracks[track]).id, header, clock), limit: share)
        }
        index.apply(map)
        return index
    }

    /// The clusters that cues name, ascending by position, and the first cluster.
    private static func cued(_ file: borrowing MatroskaFile, _ clock: MatroskaClock) -> [MatroskaMap.Point] {
        var points: [MatroskaMap.Point] = []
        for cue in file.header.cues.sorted(by: { ($0.cluster, $0.time) < ($1.cluster, $1.time) }) {
            let time = max(0, clock.seconds(cue.time))
            // ffmpeg and mkvmerge write the offset of the block; a small one is that of the first block.
            let isStart = cue.relative.map { $0 <= 64 } ?? false
            if let last = points.last, last.position == cue.cluster {
                points[points.count - 1].latest = time
                points[points.count - 1].isStart = last.isStart || isStart
            } else {
                points.append(.init(position: cue.cluster, time: time, latest: time, isStart: isStart))
            }
        }
        if points.first.map({ $0.position > file.firstCluster }) ?? true {
            points.insert(.init(position: file.firstCluster, time: 0, latest: 0, isStart: true), at: 0)
        }
        return points
    }

    /// The times of the cues of a track; of all tracks if this one has none.
    private static func cueTimes(of track: Int64, _ header: MatroskaHeader, _ clock: MatroskaClock) -> [Double] {
        let own = header.cues.filter { $0.track == track }
        return (own.isEmpty ? header.cues : own).map { max(0, clock.seconds($0.time)) }
    }

    /// The times in ascending order without duplicates; some are omitted beyond `limit`.
    private static func ascending(_ times: [Double], limit: Int) -> [Double] {
        var result: [Double] = []
        for time in times.sorted() where result.last != time { result.append(time) }
        let step = (result.count + limit - 1) / limit
        return step <= 1 ? result : stride(from: 0, to: result.count, by: step).map { result[$0] }
    }
}
