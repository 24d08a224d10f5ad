import CacheCore

/// Reads of one file by a parser: bytes that were read are kept, and the numbers of reads and of header bytes are limited.
struct MP4File {
    /// The number of bytes that are read at the head of the file.
    static let headLength: Int64 = 4 << 10

    /// The longest run that is kept; a larger box is parsed once.
    private static let keptLength: Int64 = 1 << 20

    /// The length of the file in bytes.
    let length: Int64
    private let source: MediaSource
    private let limits: MediaLimits
    /// The last runs that were read, in the order of the reads.
    private var windows: [(range: ByteRange, bytes: [UInt8])] = []
    /// The number of reads that can cause a request.
    private var readCount = 0
    /// The bytes of the headers and boxes that were parsed.
    private var byteCount: Int64 = 0
    /// The bytes that were fetched ahead last.
    private var fetched: ByteRange = 0..<0

    init(_ source: MediaSource, limits: MediaLimits) {
        self.source = source
        self.limits = limits
        length = max(0, source.length)
    }

    /// The header of the box at `offset`; nil at the end of the file, or if fewer than 8 bytes follow.
    ///
    /// If the header was not read yet, the blocks that contain it are read, or `window` bytes: players need these blocks
    /// for the index as well.
    ///
    /// - Parameter parentEnd: the largest end of the box; nil: the length of the file.
    /// - Throws: `malformed` if the size of the box is invalid or exceeds the file, and the errors of a read.
    mutating func header(
        at offset: Int64, window: Int64? = nil, parentEnd: Int64? = nil
    ) async throws(MediaError) -> MP4BoxHeader? {
        guard length - offset >= 8 else { return nil }
        let needed = ByteRange(offset: offset, length: min(16, length - offset))
        if cached(needed) == nil {
            let wanted = window.map { offset..<max(needed.upperBound, offset + $0) } ?? MediaIndex.blocks(of: needed)
            _ = try await bytes(wanted.clamped(to: 0..<length))
        }
        let bytes = try await bytes(needed)
        try count(8)
        return try MP4BoxHeader.parse(bytes, base: offset, at: offset, parentEnd: parentEnd ?? length)
    }

    /// Whether the file ends within one of its boxes from `position` on (ISO/IEC 14496-12 §4.2). The last box can state
    /// no size; then the end of the file is not known to be that of the box.
    mutating func isTruncated(from position: Int64) async throws(MediaError) -> Bool {
        var offset = position
        while offset < length {
            guard let header = try await header(at: offset, parentEnd: .max) else { return true }
            offset = header.end
        }
        return offset > length
    }

    /// The whole box with this header.
    ///
    /// - Throws: `tooLarge` if the box exceeds the limit, and the errors of a read.
    mutating func box(_ header: MP4BoxHeader) async throws(MediaError) -> MP4Box {
        guard header.end - header.start <= limits.indexBytes else {
            throw .tooLarge("The \(header.type) box exceeds \(limits.indexBytes) bytes")
        }
        guard header.payloadStart <= header.end else { throw .malformed("\(header.type)", offset: header.start) }
        try count(header.end - header.start)
        return MP4Box(header, bytes: try await bytes(header.start..<header.end), base: header.start)
    }

    /// Fetches the bytes behind `position` in one request, because boxes that follow each other closely are there: each
    /// time four times as many, from 1 MiB up to 64 MiB. Nothing if `position` was fetched.
    mutating func fetchAhead(from position: Int64) async throws(MediaError) {
        guard !fetched.contains(position + 16), position + 16 < length else { return }
        let isNext = !fetched.isEmpty && position - fetched.upperBound < Self.firstFetch
        let most = isNext ? min(Self.longestFetch, 4 * fetched.length) : Self.firstFetch
        let start = isNext ? min(position, fetched.upperBound) : position
        let wanted = ByteRange(offset: start, length: max(most, position + 32 - start))
        fetched = MediaIndex.blocks(of: wanted).clamped(to: 0..<length)
        try await source.fetch(fetched)
    }

    private static let firstFetch: Int64 = 1 << 20
    private static let longestFetch: Int64 = 64 << 20

    private mutating func count(_ bytes: Int64) throws(MediaError) {
        byteCount += bytes
        guard byteCount <= Int64(limits.indexBytes) + (1 << 20) else {
            throw .tooLarge("The index exceeds \(limits.indexBytes) bytes")
        }
    }

    /// The bytes of a range within the file. Only bytes that were not read yet are requested.
    mutating func bytes(_ range: ByteRange) async throws(MediaError) -> [UInt8] {
        if let bytes = cached(range) { return bytes }
        // The bytes of a large box are read once more rather than copied.
        guard range.length <= Self.keptLength else { return try await read(range) }
        // A box often begins in one window and continues behind it, or ends with bytes that were read.
        let first = windows.last { $0.range.contains(range.lowerBound) }
        let start = first?.range.upperBound ?? range.lowerBound
        let last = windows.last { start < $0.range.lowerBound && $0.range.contains(range.upperBound - 1) }
        let end = last?.range.lowerBound ?? range.upperBound
        var bytes = try await read(start..<end)
        if let first { bytes = slice(first, range.lowerBound..<start) + bytes }
        if let last { bytes += slice(last, end..<range.upperBound) }
        remember(bytes, range)
        return bytes
    }

    private func cached(_ range: ByteRange) -> [UInt8]? {
        windows.last { $0.range.lowerBound <= range.lowerBound && range.upperBound <= $0.range.upperBound }
            .map { slice($0, range) }
    }

    private func slice(_ window: (range: ByteRange, bytes: [UInt8]), _ range: ByteRange) -> [UInt8] {
        let start = Int(range.lowerBound - window.range.lowerBound)
        return Array(window.bytes[start..<start + Int(range.length)])
    }

    private mutating func read(_ range: ByteRange) async throws(MediaError) -> [UInt8] {
        if range.clamped(to: fetched) != range { readCount += 1 }
        guard readCount <= limits.fragments + 64 else {
            throw .tooLarge("The index is distributed over more than \(limits.fragments) places")
        }
        let bytes = try await source.read(range)
        guard bytes.count == Int(range.length) else {
            throw .unreadable(CacheError(.internal, "A read returned \(bytes.count) of \(range.length) bytes."))
        }
        return bytes
    }

    /// Keeps the last windows; a parser goes forward and never needs more than the head, a tail and two boxes.
    private mutating func remember(_ bytes: [UInt8], _ range: ByteRange) {
        if windows.count >= 8 { windows.remove(at: 1) }
        windows.append((range, bytes))
    }
}
