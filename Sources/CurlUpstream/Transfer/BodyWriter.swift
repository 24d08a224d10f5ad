import CacheCore

/// Gathers a body's bytes in a pooled buffer and hands them to the sink, up to the limit; used on one worker's thread only.
struct BodyWriter {
    private let sink: any ByteSink
    /// How many of the body's bytes are wanted; nil: all.
    private var limit: Int64?
    private let pool: BufferPool
    private var buffer: UnsafeMutableRawBufferPointer?
    private var filled = 0

    /// Bytes the sink has taken.
    private(set) var stored: Int64 = 0

    init(into sink: any ByteSink, limit: Int64?, pool: BufferPool) {
        self.sink = sink
        self.limit = limit
        self.pool = pool
    }

    /// Bytes taken in: stored and buffered.
    var received: Int64 { stored + Int64(filled) }

    /// Whether every wanted byte has come.
    var isFull: Bool { limit.map { received >= $0 } ?? false }

    /// Whether every wanted byte has been stored.
    var isSatisfied: Bool { limit.map { stored >= $0 } ?? false }

    /// Wants no more than `bytes`, or no more than it has taken where that is more; false, and without effect, where no more
    /// is wanted anyway.
    mutating func shorten(to bytes: Int64) -> Bool {
        let least = max(bytes, received)
        guard least < limit ?? .max else { return false }
        limit = least
        return true
    }

    /// Takes what is wanted of `bytes`; answers how many were.
    mutating func take(_ bytes: UnsafeRawBufferPointer) throws(CacheError) -> Int {
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

    /// Hands over what is gathered; answers whether there was anything. The buffer goes back to the pool in any case.
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
