import NIOCore
import Synchronization

/// Memory that pieces of bodies are read into, used again and again: many readers tear the heap into pieces otherwise.
///
/// Nobody waits for it: who finds it in another's hands goes without.
final class ChunkShelf: Sendable {
    private let free = Mutex<[ByteBuffer]>([])
    /// As many are kept; what is given back beyond that is freed.
    private static let most = 64
    /// As many bytes as are handed out at once from memory.
    static let chunkBytes = 64 << 10

    /// A buffer without bytes, with room for `count`.
    func take(_ count: Int) -> ByteBuffer {
        guard count > Self.chunkBytes / 2, count <= Self.chunkBytes else {
            return ByteBufferAllocator().buffer(capacity: count)
        }
        // One that somebody still looks at gets new memory when it is cleared.
        let kept = free.withLockIfAvailable { $0.popLast() } ?? nil
        var buffer = kept ?? ByteBufferAllocator().buffer(capacity: Self.chunkBytes)
        buffer.clear()
        return buffer
    }

    /// Nobody needs the bytes any more.
    func giveBack(_ buffer: ByteBuffer) {
        guard buffer.capacity == Self.chunkBytes else { return }
        free.withLockIfAvailable { if $0.count < Self.most { $0.append(buffer) } }
    }
}
