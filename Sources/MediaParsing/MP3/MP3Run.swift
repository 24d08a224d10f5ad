import CacheCore

/// Consecutive MPEG audio frames.
struct MP3Run {
    /// The position of the first frame.
    let position: Int64
    let first: MP3FrameHeader
    /// The number and length of the frames that are completely in the bytes.
    private(set) var frames = 0
    private(set) var byteCount: Int64 = 0
    /// Whether all frames have the same bit rate.
    private(set) var isConstant = true

    /// Finds the first frame that another one of the same stream follows, from `start` on.
    ///
    /// - Parameter stream: the header of another frame of the stream; nil: any stream.
    init?(in bytes: MediaBytes, from start: Int64, of stream: MP3FrameHeader? = nil) {
        var position = max(start, bytes.offset)
        while position < bytes.end {
            if let header = MP3FrameHeader(bytes, at: position), stream.map(header.continues) ?? true,
                let next = MP3FrameHeader(bytes, at: position + header.length), next.continues(header)
            {
                self.position = position
                first = header
                count(bytes)
                return
            }
            position += 1
        }
        return nil
    }

    private mutating func count(_ bytes: MediaBytes) {
        var position = self.position
        while let header = MP3FrameHeader(bytes, at: position), header.continues(first),
            position + header.length <= bytes.end
        {
            frames += 1
            byteCount += header.length
            isConstant = isConstant && header.bitRate == first.bitRate
            position += header.length
        }
    }

    /// The average number of bytes per second.
    var bytesPerSecond: Double { Double(byteCount) / (Double(max(1, frames)) * first.duration) }
}
