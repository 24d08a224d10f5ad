import CacheCore

/// Walk through clusters and blocks up to a time. The bytes are fetched in a few large ranges and parsed in small reads.
struct MatroskaWalk {
    typealias Point = MatroskaMap.Point

    /// The largest number of elements of a walk, and of its clusters.
    private static let elementLimit = 200_000
    /// The largest number of fetches.
    private static let fetchLimit = 32
    /// The smallest fetch behind the first one.
    private static let smallestFetch: Int64 = 256 << 10
    private static let windowLength: Int64 = 64 << 10
    /// A longer element is skipped, unless it is a block.
    private static let readThrough: Int64 = 4 << 20
    /// The length of the headers of a cluster with CRC-32 and Timestamp, or of a block, rounded up.
    private static let headerLength: Int64 = 64
    /// The seconds behind the end of the span up to which tracks are searched: one can have ended before.
    private static let searchSeconds = 2.0

    /// The clusters behind the first one.
    private(set) var clusters: [Point] = []
    /// The first block that belongs to later times; nil: the walk reached its limit or damaged bytes.
    private(set) var boundary: Point?
    /// Whether the walk reached its limit; otherwise it found its boundary or damaged bytes.
    private(set) var reachesLimit = false
    /// The time of the last block in seconds.
    private(set) var latest = -Double.infinity

    private let source: MediaSource
    private let clock: MatroskaClock
    private let limit: Int64
    private let margin: Int64
    private var window = MediaBytes(offset: 0, bytes: [])
    /// The end of the fetched bytes, and the number of fetches.
    private var fetchedEnd: Int64 = 0
    private var fetchCount = 0
    /// The beginning of the walk, and the end of the span in seconds.
    private var start = Point(position: 0, time: 0, latest: 0, isStart: true)
    private var end = Double.infinity
    private var clusterTicks: UInt64 = 0
    /// The last times by track.
    private var times: [Int64: Double] = [:]

    /// - Parameters:
    ///   - limit: the position where the walk ends.
    ///   - margin: the bytes that are fetched behind an estimated position.
    init(source: MediaSource, clock: MatroskaClock, limit: Int64, margin: Int64) {
        self.source = source
        self.clock = clock
        self.limit = limit
        self.margin = margin
    }

    /// Fetches a range with the margin behind it.
    mutating func fetch(_ range: ByteRange) async throws(MediaError) {
        fetchCount += 1
        guard fetchCount <= Self.fetchLimit else {
            throw .tooLarge("The clusters up to the time need more than \(Self.fetchLimit) requests")
        }
        fetchedEnd = min(source.length, ByteRange(offset: range.upperBound, length: margin).upperBound)
        try await source.fetch(range.lowerBound..<max(range.lowerBound, fetchedEnd))
    }

    /// Walks from a cluster to the first block behind `end` seconds. Damaged bytes end the walk.
    mutating func run(from start: Point, until end: Double) async throws(MediaError) {
        (self.start, self.end) = (start, end)
        var position = start.position
        var elementCount = 0
        walk: while position < limit, elementCount < Self.elementLimit,
            end < .infinity || position + Self.headerLength <= limit
        {
            elementCount += 1
            let bytes = try await view(position)
            guard let element = try? EBMLElement(bytes, at: position) else { break }
            switch element.id {
            case MatroskaID.cluster:
                guard let ticks = MatroskaClock.timestamp(of: element, bytes) else { break walk }
                clusterTicks = ticks
                if position > start.position { addCluster(at: position) }
                position = try await skips(element) ? element.end ?? element.content : element.content
            case MatroskaID.simpleBlock, MatroskaID.blockGroup:
                guard let end = element.end, self.end < .infinity || end <= limit else { break walk }
                if let time = add(element, bytes), isBoundary(time, element.offset) { return }
                position = end
            default:
                guard let end = element.end else { break walk }
                position = end
            }
        }
        reachesLimit = position + Self.headerLength > limit
        guard end == .infinity, let covered = times.values.min(), position > start.position else { return }
        // The rest is not cached; its times begin where those of the first track end.
        boundary = Point(
            position: min(position, limit), time: max(start.time, covered), latest: 0, isStart: true, isCluster: false)
    }

    private mutating func addCluster(at position: Int64) {
        let time = clock.seconds(clusterTicks)
        clusters.append(Point(position: position, time: time, latest: time, isStart: true))
    }

    /// Whether the cluster ends before the end of the span: the next one is fetched and begins early enough.
    private mutating func skips(_ cluster: EBMLElement) async throws(MediaError) -> Bool {
        guard end < .infinity, let next = cluster.end, next <= min(limit, fetchedEnd) - Self.headerLength else {
            return false
        }
        let bytes = try await view(next)
        guard let element = try? EBMLElement(bytes, at: next), element.id == MatroskaID.cluster,
            let ticks = MatroskaClock.timestamp(of: element, bytes)
        else { return false }
        return clock.seconds(ticks) <= end
    }

    /// Notes the time of a block; nil if its header is not in `bytes`.
    private mutating func add(_ element: EBMLElement, _ bytes: MediaBytes) -> Double? {
        guard let block = MatroskaBlock(element, bytes) else { return nil }
        let track = block.track
        let time = clock.seconds(clusterTicks) + Double(block.offset) * clock.secondsPerTick
        latest = max(latest, time)
        if track == clock.video || clock.audio.contains(track) { times[track] = max(times[track] ?? time, time) }
        return time
    }

    /// Whether all tracks have passed the end of the span. Video passes it by the distance of reordered frames.
    private mutating func isBoundary(_ time: Double, _ position: Int64) -> Bool {
        guard time >= end else { return false }
        let video = clock.video.flatMap { times[$0] }
        let pastVideo = video.map { $0 >= end + MatroskaMap.reordering + 0.05 } ?? (clock.video == nil)
        let isPast = pastVideo && times.allSatisfy { $0.value >= end } || time >= end + Self.searchSeconds
        guard isPast, position > start.position else { return false }
        boundary = Point(
            position: position, time: end + MatroskaMap.reordering + 0.01, latest: 0, isStart: true, isCluster: false)
        return true
    }

    /// The header at `position`, with the bytes behind it. Bytes behind the fetched ones are fetched up to the estimated
    /// end of the span.
    private mutating func view(_ position: Int64) async throws(MediaError) -> MediaBytes {
        let header = ByteRange(offset: position, length: Self.headerLength).clamped(to: 0..<source.length)
        if header.upperBound > fetchedEnd, end < .infinity {
            let walked = min(1 << 50, max(1, position - start.position))
            let seconds = max(0.1, clock.seconds(clusterTicks) - start.time)
            let estimate = Double(walked) / seconds * max(0, end - clock.seconds(clusterTicks))
            let most = max(4 * walked, 4 * Self.smallestFetch)
            let length = min(most, max(Self.smallestFetch, Int64(saturating: estimate)))
            let next = max(header.upperBound, min(limit, ByteRange(offset: position, length: length).upperBound))
            try await fetch((position - fetchedEnd > Self.readThrough ? position : fetchedEnd)..<next)
        }
        if header.lowerBound < window.offset || header.upperBound > window.end {
            let bound = end < .infinity ? max(fetchedEnd, header.upperBound) : max(limit, header.upperBound)
            let range = ByteRange(offset: position, length: Self.windowLength)
                .clamped(to: 0..<min(source.length, bound))
            window = MediaBytes(offset: range.lowerBound, bytes: try await source.read(range)[...])
        }
        return window
    }
}
