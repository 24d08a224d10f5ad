import CacheCore
import CacheEngine
import NIOCore
import ReaderAccess
import Synchronization

/// The body of one content response on either path. Guarantees that its read is finished exactly once.
final class ContentBody: Sendable {
    let read: ContentRead
    private let note: RequestLogContext
    /// The reader of the request; nil without a token.
    var reader: Reader? { note.content.reader }
    private let stopwatch: @Sendable () -> Duration
    /// Set by the first ``end(_:)``.
    private let isOver = Atomic(false)

    init(_ read: ContentRead, note: RequestLogContext, stopwatch: @escaping @Sendable () -> Duration) {
        self.read = read
        self.note = note
        self.stopwatch = stopwatch
    }

    // Hummingbird releases the body without a call if the head cannot be written, because the client has disconnected.
    deinit { end(.clientGone) }

    /// Reads the first bytes; nil for an empty body. They are read before the head is sent, so that a failure still
    /// gets its status. A failure ends the read.
    func first() async throws(CacheError) -> ByteBuffer? {
        do throws(CacheError) {
            return try await read.next(atMost: Self.firstBytes)
        } catch {
            end(.failed(error))
            throw error
        }
    }

    /// The maximum number of first bytes. They are copied and leave together with the head; later bytes can be sent
    /// from the file.
    private static let firstBytes: Int64 = 16 << 10

    /// Records the time to the first byte, before each write.
    func begins() {
        note.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch() }
        }
    }

    /// Records sent bytes.
    func sent(_ count: Int) { note.update { $0.sentBytes += Int64(count) } }

    /// Finishes the read. Returns whether this was the first call; further calls have no effect.
    @discardableResult
    func end(_ ending: ReadEnding) -> Bool {
        guard !isOver.exchange(true, ordering: .relaxed) else { return false }
        note.add(read.finish(ending))
        return true
    }
}
