import CacheCore
import CacheEngine
import NIOCore
import ReaderAccess
import Synchronization

/// The body of one content response. Guarantees that its read is finished exactly once.
final class ContentBody: Sendable {
    let read: ContentRead
    private let logContext: RequestLogContext
    /// The reader of the request; nil without a token.
    var reader: Reader? { logContext.content.reader }
    private let stopwatch: @Sendable () -> Duration
    /// Set by the first ``end(_:)``.
    private let isOver = Atomic(false)

    init(_ read: ContentRead, logContext: RequestLogContext, stopwatch: @escaping @Sendable () -> Duration) {
        self.read = read
        self.logContext = logContext
        self.stopwatch = stopwatch
    }

    deinit { end(.clientGone) }

    /// The maximum number of first bytes. They are copied and leave together with the head; later bytes can be sent
    /// from the file.
    static let firstBytes: Int64 = 16 << 10

    /// Records the time to the first byte, before each write.
    func begins() {
        logContext.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch() }
        }
    }

    /// Counts bytes that have left for the client.
    func sent(_ count: Int) {
        logContext.update { $0.sentBytes += Int64(count) }
        read.sent(Int64(count))
    }

    /// Finishes the read. Returns whether this was the first call; further calls have no effect.
    @discardableResult
    func end(_ ending: ReadEnding) -> Bool {
        guard !isOver.exchange(true, ordering: .relaxed) else { return false }
        logContext.add(read.finish(ending))
        return true
    }
}
