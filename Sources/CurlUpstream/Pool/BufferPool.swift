/// Coalescing buffers of one worker, kept for reuse; used on the worker's thread only.
final class BufferPool {
    private let bytes: Int
    private let keeps: Int
    private var free: [UnsafeMutableRawBufferPointer] = []

    init(bytes: Int, keeps: Int = 8) {
        self.bytes = bytes
        self.keeps = keeps
    }

    deinit { for buffer in free { buffer.deallocate() } }

    func take() -> UnsafeMutableRawBufferPointer {
        free.popLast() ?? UnsafeMutableRawBufferPointer.allocate(byteCount: bytes, alignment: 4096)
    }

    func give(_ buffer: UnsafeMutableRawBufferPointer) {
        if free.count < keeps { free.append(buffer) } else { buffer.deallocate() }
    }
}
