/// Pool of coalescing buffers of one worker. Not thread-safe: used on the worker's thread only.
final class BufferPool {
    /// Size of each buffer in bytes.
    private let bytes: Int
    /// Maximum number of free buffers that are kept for reuse.
    private let keeps: Int
    private var free: [UnsafeMutableRawBufferPointer] = []

    init(bytes: Int, keeps: Int = 8) {
        self.bytes = bytes
        self.keeps = keeps
    }

    deinit { for buffer in free { buffer.deallocate() } }

    /// A free buffer, or a new one aligned to 4096 bytes. The caller returns it with `give`.
    func take() -> UnsafeMutableRawBufferPointer {
        free.popLast() ?? UnsafeMutableRawBufferPointer.allocate(byteCount: bytes, alignment: 4096)
    }

    /// Returns a buffer to the pool, or frees it if the pool is full.
    func give(_ buffer: UnsafeMutableRawBufferPointer) {
        if free.count < keeps { free.append(buffer) } else { buffer.deallocate() }
    }
}
