import CacheCore
import NIOCore

/// Buffer pool for chunks of bodies. Reuse avoids heap fragmentation, which many concurrent readers would cause.
///
/// No caller waits for the lock: if it is contended, `take` allocates a buffer and `giveBack` frees one.
final class ByteBufferPool: Sendable {
    /// Guards the free buffers, each with a capacity of `chunkBytes`.
    private let free = OrderedMutex<[ByteBuffer]>(.leaf, [])
    /// The maximum number of free buffers; further ones are deallocated.
    private static let most = 64
    /// The capacity of a pooled buffer in bytes, and the most bytes that a read hands out from memory at once.
    static let chunkBytes = 64 << 10

    /// An empty buffer with a capacity of at least `count` bytes. Only sizes from half a chunk to a chunk come from
    /// the pool.
    func take(_ count: Int) -> ByteBuffer {
        guard count > Self.chunkBytes / 2, count <= Self.chunkBytes else {
            return ByteBufferAllocator().buffer(capacity: count)
        }
        // If the storage of a pooled buffer is still shared, `clear` allocates new storage.
        let kept = free.withLockIfAvailable { $0.popLast() } ?? nil
        var buffer = kept ?? ByteBufferAllocator().buffer(capacity: Self.chunkBytes)
        buffer.clear()
        return buffer
    }

    /// Returns a buffer to the pool; its bytes are no longer needed.
    func giveBack(_ buffer: ByteBuffer) {
        guard buffer.capacity == Self.chunkBytes else { return }
        free.withLockIfAvailable { if $0.count < Self.most { $0.append(buffer) } }
    }
}
