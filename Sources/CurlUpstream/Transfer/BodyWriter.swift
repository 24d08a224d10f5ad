import CacheCore

/// Coalesces a body's bytes in a pooled buffer and writes them to the sink, up to a limit. Not thread-safe: used on one
/// worker's thread only.
struct BodyWriter {
    private let sink: any ByteSink
    /// Number of wanted body bytes; nil: all.
    private var limit: Int64?
    private let pool: BufferPool
    /// The current buffer, if bytes are gathered; it is returned to the pool after each flush.
    private var buffer: UnsafeMutableRawBufferPointer?
    /// Number of valid bytes in `buffer`.
    private var filled = 0

    /// Bytes that the sink has accepted.
    private(set) var stored: Int64 = 0

    init(into sink: any ByteSink, limit: Int64?, pool: BufferPool) {
        self.sink = sink
        self.limit = limit
        self.pool = pool
    }

    /// Bytes received: stored and buffered.
    var received: Int64 { stored + Int64(filled) }

    /// Whether every wanted byte has been received.
    var isFull: Bool { limit.map { received >= $0 } ?? false }

    /// Whether every wanted byte has been stored.
    var isSatisfied: Bool { limit.map { stored >= $0 } ?? false }

    /// Lowers the limit to `bytes`, but not below the bytes received. False, and without effect, if the limit is not
    /// higher anyway.
    mutating func shorten(to bytes: Int64) -> Bool {
        let least = max(bytes, received)
        guard least < limit ?? .max else { return false }
        limit = least
        return true
    }

    /// Accepts the wanted part of `bytes` and returns its length. Throws the sink's error.
    mutating func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) -> Int {
        let room = limit.map { max(0, $0 - stored - Int64(filled)) } ?? Int64.max
        let wanted = Int(min(Int64(bytes.count), room))
        var taken = 0
        while taken < wanted {
            let buffer = buffer ?? pool.take()
            self.buffer = buffer
            let count = min(wanted - taken, buffer.count - filled)
            let piece = UnsafeRawBufferPointer(rebasing: bytes[taken..<taken + count])
            UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + count]).copyMemory(from: piece)
            filled += count
            taken += count
            if filled == buffer.count { try flush() }
        }
        return wanted
    }

    /// Writes the buffered bytes to the sink and returns whether there were any. Returns the buffer to the pool in any
    /// case. Throws the sink's error.
    @discardableResult
    mutating func flush() throws(CacheError) -> Bool {
        guard let buffer else { return false }
        let count = filled
        filled = 0
        self.buffer = nil
        defer { pool.give(buffer) }
        guard count > 0 else { return false }
        try sink.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        stored += Int64(count)
        return true
    }
}
