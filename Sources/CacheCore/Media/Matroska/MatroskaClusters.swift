/// The clusters of a Matroska file as points of time, and the pieces between them (RFC 9559 §5.1.3).
enum MatroskaClusters {
    /// A cluster.
    struct Point {
        var position: Int64
        /// The time of the first cue or of the cluster in seconds.
        var time: Double
        /// The time of the last cue of the cluster in seconds.
        var latest: Double
        /// Whether `time` is that of the first block; otherwise earlier blocks can precede it.
        var isStart: Bool
        /// The time of the first video frame of a cluster in a file without cues if it is a key frame; nil: unknown.
        var keyTime: Double?
    }

    /// The largest number of reads for the headers of clusters of a file without cues.
    private static let walkReads = 2000
    /// The largest number of elements that are visited in such a file.
    private static let walkElements = 200_000
    /// The largest numbers of spans to refine, and of reads for that.
    private static let refineSpans = 32
    private static let refineReads = 64
    /// Longer pieces are sparse, in seconds.
    private static let sparse = 4.0
    /// The seconds by which blocks of other tracks can precede the first video block of a cluster: streams are
    /// interleaved by decoding time, which is earlier than the presentation time.
    private static let reordering = 0.25
    /// The usual longest duration of a cluster in seconds, and the longest one with ticks of 1 ms (RFC 9559 §10.2).
    private static let usualDuration = 5.0
    private static let longestDuration = 33.0
    /// The length of a cluster's header with CRC-32 and Timestamp, rounded up.
    private static let headerLength: Int64 = 64
    /// The length of a read at the beginning of a cluster without cues: its header and the first blocks.
    private static let walkLength: Int64 = 1024

    /// The clusters that cues name, ascending by position, and the first cluster.
    static func cued(_ file: borrowing MatroskaFile) -> [Point] {
        let header = file.header
        var points: [Point] = []
        for cue in header.cues.sorted(by: { ($0.cluster, $0.time) < ($1.cluster, $1.time) }) {
            let time = header.seconds(cue.time)
            // ffmpeg and mkvmerge write the offset of the block; a small one is that of the first block.
            let isStart = cue.relative.map { $0 <= headerLength } ?? false
            if let last = points.last, last.position == cue.cluster {
                points[points.count - 1].latest = time
                points[points.count - 1].isStart = last.isStart || isStart
            } else {
                points.append(Point(position: cue.cluster, time: time, latest: time, isStart: isStart))
            }
        }
        if let first = points.first, first.position > file.firstCluster {
            points.insert(Point(position: file.firstCluster, time: 0, latest: 0, isStart: true), at: 0)
        }
        return points
    }

    /// Adds the clusters inside of pieces longer than 4 s if few pieces are that long and few reads are necessary.
    static func refine(
        _ points: [Point], _ file: inout MatroskaFile, until end: Int64
    ) async throws(MediaError) -> [Point] {
        let duration = file.header.duration ?? 0
        let spans = points.indices.filter { index in
            let next = index + 1 < points.count ? points[index + 1].time : duration
            return next - points[index].time > sparse
        }
        guard (1...refineSpans).contains(spans.count) else { return points }
        var added: [Point] = []
        let readsBefore = file.buffer.readCount
        for index in spans {
            let spanEnd = index + 1 < points.count ? points[index + 1].position : end
            var position = points[index].position
            while position < spanEnd, file.buffer.readCount - readsBefore < refineReads {
                let bytes = try await file.view(ByteRange(offset: position, length: headerLength))
                // The cues are sufficient if the bytes between them are not as expected.
                guard let element = try? EBMLElement(bytes, at: position), let next = element.end else { break }
                if element.id == MatroskaID.cluster, position > points[index].position,
                    let time = timestamp(of: element, bytes, file.header)
                {
                    added.append(Point(position: position, time: time, latest: time, isStart: true))
                }
                position = next
            }
        }
        return (points + added).sorted { $0.position < $1.position }
    }

    /// The clusters of a file without cues: reads the header of each cluster, and of each block in clusters of unknown
    /// size. Throws `.unsupported` if too many reads are necessary.
    static func walk(_ file: inout MatroskaFile, until end: Int64) async throws(MediaError) -> [Point] {
        let tooMany = MediaError.unsupported("Matroska without Cues")
        let readsBefore = file.buffer.readCount
        var points: [Point] = []
        var position = file.firstCluster
        var isInside = false
        var count = 0
        while position < end {
            let bytes = try await file.view(
                ByteRange(offset: position, length: walkLength), ahead: isInside ? 3072 : 0)
            guard let element = try? EBMLElement(bytes, at: position) else { break }  // a truncated or damaged file
            let isCluster = element.id == MatroskaID.cluster
            if isCluster, let time = timestamp(of: element, bytes, file.header) {
                let keyTime = keyTime(element, bytes, file.header)
                points.append(Point(position: position, time: time, latest: time, isStart: true, keyTime: keyTime))
            }
            guard let next = element.end ?? (isCluster ? element.content : nil) else { break }
            isInside = isCluster ? element.end == nil : isInside && !MatroskaID.topLevel.contains(element.id)
            position = next
            count += 1
            let reads = file.buffer.readCount - readsBefore
            let share = Double(position - file.firstCluster) / Double(end - file.firstCluster)
            guard reads < walkReads, count < walkElements,
                reads < 100 || Double(reads) <= share * Double(2 * walkReads)
            else { throw tooMany }
        }
        guard !points.isEmpty else {
            throw .malformed("Segment without a Cluster with Timestamp", offset: file.firstCluster)
        }
        return points
    }

    /// The timestamp of a cluster in seconds, which is the first child or follows CRC-32; nil if it is not in `bytes`.
    private static func timestamp(of cluster: EBMLElement, _ bytes: MediaBytes, _ header: MatroskaHeader) -> Double? {
        var position = cluster.content
        while position < bytes.end, let child = try? EBMLElement(bytes, at: position), let end = child.end {
            if child.id == MatroskaID.timestamp {
                guard end <= bytes.end else { return nil }
                return bytes.part(child.content..<end).unsignedInteger.map(header.seconds)
            }
            position = end
        }
        return nil
    }

    /// The time of the first video frame of a cluster if it is a key frame in a SimpleBlock (RFC 9559 §10.2); nil if
    /// its header is not in `bytes`. Other blocks can precede it.
    private static func keyTime(_ cluster: EBMLElement, _ bytes: MediaBytes, _ header: MatroskaHeader) -> Double? {
        var position = cluster.content
        var timestamp: UInt64 = 0
        while position < bytes.end, let child = try? EBMLElement(bytes, at: position), let end = child.end {
            if child.id == MatroskaID.timestamp { timestamp = bytes.part(child.content..<end).unsignedInteger ?? 0 }
            if child.id == MatroskaID.simpleBlock {
                guard let number = bytes.byte(at: child.content), number & 0x80 != 0,
                    let offset = bytes.number(at: child.content + 1, count: 2),
                    let flags = bytes.byte(at: child.content + 3)
                else { return nil }
                if header.tracks.contains(where: { $0.kind == .video && $0.id == Int64(number & 0x7F) }) {
                    let relative = Int16(bitPattern: UInt16(offset))
                    let ticks = relative < 0 ? timestamp : timestamp &+ UInt64(relative)
                    return flags & 0x80 != 0 ? header.seconds(ticks) : nil
                }
            }
            position = end
        }
        return nil
    }

    /// The pieces between points, ascending by position; adjacent ones are merged beyond `limit`.
    ///
    /// - Parameter precedesVideo: whether the track is interleaved with video. Then its last blocks of a cluster end
    ///   before the next cluster begins, and the pieces do not overlap at a sync time of the video.
    static func pieces(
        _ points: [Point], end: Int64, duration: Double?, limit: Int, precedesVideo: Bool
    ) -> [MediaIndex.Piece] {
        let step = max(1, (points.count + limit - 1) / limit)
        return stride(from: 0, to: points.count, by: step).map { index in
            let point = points[index]
            let nextIndex = index + step
            let latest = points[index..<min(nextIndex, points.count)].reduce(0) { max($0, $1.latest) }
            let nextPosition = nextIndex < points.count ? points[nextIndex].position : max(point.position, end)
            let nextTime =
                nextIndex < points.count
                ? points[nextIndex].time - (precedesVideo ? reordering : 0)
                : duration ?? estimatedEnd(points, bytes: nextPosition - point.position)
            let start = index == 0 ? 0 : max(0, point.time - lead(of: point, after: points[index - 1]))
            return MediaIndex.Piece(
                time: start..<max(start, nextTime, latest), bytes: point.position..<max(point.position, nextPosition))
        }
    }

    /// The seconds by which the first block of a cluster can precede its time.
    private static func lead(of point: Point, after previous: Point) -> Double {
        point.isStart ? reordering : max(reordering, min(usualDuration, point.time - previous.time))
    }

    /// The end of a presentation of unknown duration, by the average rate before its last cluster of so many `bytes`.
    private static func estimatedEnd(_ points: [Point], bytes: Int64) -> Double {
        guard let first = points.first, let last = points.last else { return 0 }
        let seconds = last.time - first.time
        guard seconds > 0, last.position > first.position else { return last.time + longestDuration }
        let rate = Double(last.position - first.position) / seconds
        return last.time + min(longestDuration, max(1, 2 * Double(bytes) / rate))
    }
}
