import CacheCore

/// Read buffer of a parser: keeps all bytes that were read, so that no byte is read twice, and bounds their number.
struct MediaReadBuffer {
    private struct Block {
        var offset: Int64
        var bytes: [UInt8]
        var range: ByteRange { ByteRange(offset: offset, length: Int64(bytes.count)) }
    }

    let source: MediaSource
    /// The number of bytes that were read.
    private(set) var bytesRead: Int64 = 0
    /// The number of reads.
    private(set) var readCount = 0
    private let byteLimit: Int64
    /// The bytes in ascending order; no two blocks overlap.
    private var blocks: [Block] = []

    init(source: MediaSource, byteLimit: Int64) {
        self.source = source
        self.byteLimit = byteLimit
    }

    /// The bytes of `range` inside the file. Missing bytes are read, with up to `ahead` following bytes that are
    /// missing too. Throws `.tooLarge` beyond the limit for all reads.
    mutating func view(_ range: ByteRange, ahead: Int64 = 0) async throws(MediaError) -> MediaBytes {
        let wanted = range.clamped(to: 0..<max(0, source.length))
        let first = firstBlock { $0.range.upperBound > wanted.lowerBound }
        if first < blocks.count, blocks[first].offset <= wanted.lowerBound,
            blocks[first].range.upperBound >= wanted.upperBound
        {
            let block = blocks[first]
            return MediaBytes(offset: block.offset, bytes: block.bytes[...]).part(wanted)
        }
        guard !wanted.isEmpty else { return MediaBytes(offset: wanted.lowerBound, bytes: []) }
        return try await fill(wanted, ahead: ahead)
    }

    /// Reads the gaps of `wanted` and joins its blocks to one.
    private mutating func fill(_ wanted: ByteRange, ahead: Int64) async throws(MediaError) -> MediaBytes {
        let first = firstBlock { $0.range.upperBound >= wanted.lowerBound }
        let next = firstBlock { $0.offset > wanted.upperBound }
        let bound = next < blocks.count ? blocks[next].offset : source.length
        let end = min(bound, ByteRange(offset: wanted.upperBound, length: ahead).upperBound)
        var joined = Block(offset: min(wanted.lowerBound, first < next ? blocks[first].offset : .max), bytes: [])
        for index in first..<next {
            if joined.range.upperBound < blocks[index].offset {
                let gap = max(joined.range.upperBound, wanted.lowerBound)..<blocks[index].offset
                joined.bytes += try await read(gap)
            }
            if joined.bytes.isEmpty {
                swap(&joined.bytes, &blocks[index].bytes)  // so that appending does not copy the bytes
            } else {
                joined.bytes += blocks[index].bytes
            }
        }
        if joined.range.upperBound < end {
            joined.bytes += try await read(max(joined.range.upperBound, wanted.lowerBound)..<end)
        }
        blocks.replaceSubrange(first..<next, with: CollectionOfOne(joined))
        return MediaBytes(offset: joined.offset, bytes: joined.bytes[...]).part(wanted)
    }

    private mutating func read(_ range: ByteRange) async throws(MediaError) -> [UInt8] {
        guard range.length <= byteLimit - bytesRead else {
            throw .tooLarge("The index of the file needs more than \(byteLimit) bytes.")
        }
        let bytes = try await source.read(range)
        guard bytes.count == Int(range.length) else {
            throw .malformed("The file ended early.", offset: range.lowerBound + Int64(bytes.count))
        }
        bytesRead += range.length
        readCount += 1
        return bytes
    }

    /// The index of the first block where `holds` is true, by binary search; `holds` must be monotonic.
    private func firstBlock(where holds: (Block) -> Bool) -> Int {
        var low = 0
        var high = blocks.count
        while low < high {
            let middle = (low + high) / 2
            if holds(blocks[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
