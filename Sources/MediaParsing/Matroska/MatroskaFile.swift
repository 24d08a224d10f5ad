import CacheCore

/// Reader of the top-level elements of a Matroska file.
struct MatroskaFile {
    /// The first read; ffmpeg reads as much when it opens a file.
    private static let headLength: Int64 = 64 << 10
    /// A tail that is not longer is read at once.
    private static let tailLength: Int64 = 256 << 10
    /// The largest numbers of elements before the first cluster, and of those in it that are examined.
    private static let elementLimit = 1000
    /// The bytes of the first cluster in which the first blocks of all tracks are searched.
    private static let openingLength: Int64 = 256 << 10
    /// The length of the header of a block, rounded up.
    private static let blockHeaderLength: Int64 = 64

    private(set) var buffer: MediaReadBuffer
    private(set) var header: MatroskaHeader
    /// Whether the segment is longer than the file; its duration is then that of the missing part as well.
    let isTruncated: Bool
    /// The position of the first cluster; the end of the segment if there is none.
    private(set) var firstCluster: Int64
    /// The bytes of header and index.
    private(set) var indexRanges = ByteRangeSet()
    /// Whether the cues are before the first cluster.
    private(set) var cuesAreFirst = false
    /// The positions of the elements behind the first cluster that SeekHead names.
    private var tail: [Int64] = []

    /// Parses the EBML header and finds the segment. Throws `.unsupported` for another document.
    init(source: MediaSource, limits: MediaLimits) async throws(MediaError) {
        buffer = MediaReadBuffer(source: source, byteLimit: Int64(limits.indexBytes))
        let head = try await buffer.view(0..<Self.headLength)
        guard head.number(at: 0, count: 4) == UInt64(MatroskaID.ebml) else {
            throw .unsupported("The file does not begin with an EBML header: \(head.hexadecimal(at: 0))")
        }
        var element = try EBMLElement(head, at: 0)
        guard let end = element.end, end <= head.end else { throw .malformed("EBML: size of the header", offset: 0) }
        try Self.checkDocument(head.part(element.content..<end))
        var position = end
        repeat {
            element = try EBMLElement(head, at: position)
            position = element.end ?? .max
        } while element.id != MatroskaID.segment
        header = MatroskaHeader(segment: element.content..<max(element.content, min(position, source.length)))
        isTruncated = element.end.map { $0 > source.length } ?? false
        firstCluster = header.segment.upperBound
    }

    /// Checks version, limits and type of the document (RFC 8794 §11.2).
    private static func checkDocument(_ content: MediaBytes) throws(MediaError) {
        var type = ""
        var fields = EBMLChildren(content, of: "EBML")
        while let field = try fields.next() {
            let value = field.content.unsignedInteger ?? .max
            switch field.id {
            case MatroskaID.docType: type = field.content.shortText
            case MatroskaID.ebmlReadVersion where value > 1: throw .unsupported("EBMLReadVersion \(value)")
            case MatroskaID.ebmlMaxIDLength where value > 4: throw .unsupported("EBMLMaxIDLength \(value)")
            case MatroskaID.ebmlMaxSizeLength where value > 8: throw .unsupported("EBMLMaxSizeLength \(value)")
            default: break
            }
        }
        guard type == "matroska" || type == "webm" else { throw .unsupported("EBML document type \"\(type)\"") }
    }

    /// The end of the last cluster, or a position behind it: that of the first element behind the last cue.
    var clustersEnd: Int64 {
        let lastCue = header.cues.lazy.map(\.cluster).max() ?? .max
        return tail.filter { $0 > lastCue }.min() ?? header.segment.upperBound
    }

    /// The header of the element at `position`, with up to `ahead` following bytes in the buffer.
    mutating func element(at position: Int64, ahead: Int64) async throws(MediaError) -> EBMLElement {
        let range = ByteRange(offset: position, length: EBMLElement.longestHeader)
        return try EBMLElement(await buffer.view(range, ahead: ahead), at: position)
    }

    /// The first time of the file in seconds, from which players count: the earliest first block of the audio and video
    /// tracks. Throws `.malformed` if a segment without cues has no cluster with a timestamp.
    mutating func firstTime() async throws(MediaError) -> Double {
        let bytes = try await buffer.view(ByteRange(offset: firstCluster, length: 64))
        guard firstCluster < header.segment.upperBound, let cluster = try? EBMLElement(bytes, at: firstCluster),
            let ticks = MatroskaClock.timestamp(of: cluster, bytes)
        else {
            guard !header.cues.isEmpty else {
                throw .malformed("Segment without a Cluster with Timestamp", offset: firstCluster)
            }
            return 0
        }
        var times: [Int64: Double] = [:]
        let tracks = Set(header.tracks.lazy.filter { $0.kind == .video || $0.kind == .audio }.map(\.id))
        let most = ByteRange(offset: cluster.content, length: Self.openingLength).upperBound
        let end = min(most, cluster.end ?? most, header.segment.upperBound)
        var (position, isFetched, count) = (cluster.content, false, 0)
        while position < end, times.count < tracks.count, count < Self.elementLimit {
            if !isFetched, position + Self.blockHeaderLength > Self.headLength {
                // Players read the first blocks too.
                try await buffer.source.fetch(position..<end)
                isFetched = true
            }
            let bytes = try await buffer.view(
                ByteRange(offset: position, length: Self.blockHeaderLength), ahead: 4096)
            guard let element = try? EBMLElement(bytes, at: position), let next = element.end else { break }
            if let block = MatroskaBlock(element, bytes), tracks.contains(block.track), times[block.track] == nil {
                let seconds = (Double(ticks) + Double(block.offset)) * header.secondsPerTick
                times[block.track] = seconds - (header.codecDelays[block.track] ?? 0)
            }
            position = next
            count += 1
        }
        return times.values.min() ?? Double(ticks) * header.secondsPerTick
    }

    /// Parses the elements before the first cluster.
    mutating func readHeader() async throws(MediaError) {
        var position = header.segment.lowerBound
        var count = 0
        while position < header.segment.upperBound {
            let element = try await element(at: position, ahead: 4096)
            if element.id == MatroskaID.cluster {
                firstCluster = position
                break
            }
            guard let end = element.end else { throw .malformed("\(element.name): unknown size", offset: position) }
            count += 1
            guard count <= Self.elementLimit else {
                throw .tooLarge("Segment: more than \(Self.elementLimit) elements before the first Cluster")
            }
            if MatroskaHeader.needs(element.id) { try await parse(element, end: end) }
            position = end
        }
        cuesAreFirst = !header.cues.isEmpty
        indexRanges.insert(0..<firstCluster)
    }

    /// Parses the elements behind the first cluster that SeekHead elements name. Wrong entries are ignored.
    mutating func readTail() async throws(MediaError) {
        var visited: Set<Int64> = []
        while let position = header.seeks.filter({ isTail($0) && !visited.contains($0.position) }).map(\.position).min()
        {
            visited.insert(position)
            let rest = buffer.source.length - position
            let bytes = try await buffer.view(
                ByteRange(offset: position, length: EBMLElement.longestHeader),
                ahead: rest <= Self.tailLength ? rest : 4096)
            // A truncated or edited file can have entries for elements that are not there.
            guard let element = try? EBMLElement(bytes, at: position),
                header.seeks.contains(where: { $0.position == position && $0.id == element.id }),
                let end = element.end, end <= header.segment.upperBound
            else { continue }
            if MatroskaHeader.needs(element.id) { try await parse(element, end: end) }
            indexRanges.insert(position..<end)
            tail.append(position)
        }
    }

    private func isTail(_ seek: (id: UInt32, position: Int64)) -> Bool {
        seek.position > firstCluster && MatroskaID.topLevel.contains(seek.id)
    }

    private mutating func parse(_ element: EBMLElement, end: Int64) async throws(MediaError) {
        guard end <= header.segment.upperBound else {
            throw .malformed("\(element.name): the element exceeds the segment or the file.", offset: element.offset)
        }
        try header.add(element.id, await buffer.view(element.content..<end))
    }
}
