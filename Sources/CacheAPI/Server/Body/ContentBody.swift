import CacheCore
import CacheEngine
import NIOCore
import Synchronization

/// One read's bytes on their way to the client, on either road, and the promise that the read is finished exactly once.
final class ContentBody: Sendable {
    let read: ContentRead
    private let note: RequestNote
    private let stopwatch: Stopwatch
    private let isOver = Atomic(false)

    init(_ read: ContentRead, note: RequestNote, stopwatch: Stopwatch) {
        self.read = read
        self.note = note
        self.stopwatch = stopwatch
    }

    // Whatever drops it before its end drops the client: the framework does, where the head cannot be written.
    deinit { end(.clientGone) }

    /// The first bytes, awaited before the head is sent, so that failures can still be told.
    func first() async throws(CacheError) -> ByteBuffer? {
        do throws(CacheError) {
            return try await read.next(atMost: Self.firstBytes)
        } catch {
            end(.failed(error))
            throw error
        }
    }

    /// They leave together with the head; what follows need not be copied.
    private static let firstBytes: Int64 = 16 << 10

    /// Bytes are about to be written.
    func begins() {
        note.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch.elapsed }
        }
    }

    /// Bytes have left.
    func sent(_ count: Int) { note.update { $0.sentBytes += Int64(count) } }

    /// Tells the read how it ended, the first time; answers whether this was it.
    @discardableResult
    func end(_ ending: ReadEnding) -> Bool {
        guard !isOver.exchange(true, ordering: .relaxed) else { return false }
        note.add(read.finish(ending))
        return true
    }
}
