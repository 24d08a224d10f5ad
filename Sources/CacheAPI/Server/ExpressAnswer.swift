import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1

/// One answer of the express lane on its way: its head, its bytes, and the promise that the read is finished once.
final class ExpressAnswer {
    let head: HTTPResponseHead
    /// Nil where there is no body.
    let first: ByteBuffer?
    private let read: ContentRead
    private let note: RequestNote
    private let line: AccessLine
    private let stopwatch: Stopwatch
    /// The bytes of the body that are not sent yet.
    private(set) var left: Int64
    private var isOver = false

    init(
        head: HTTPResponseHead, first: ByteBuffer?, read: ContentRead, note: RequestNote, line: AccessLine,
        stopwatch: Stopwatch
    ) {
        self.head = head
        self.first = first
        self.read = read
        self.note = note
        self.line = line
        self.stopwatch = stopwatch
        left = first == nil ? 0 : read.plan.contentLength ?? 0
    }

    // Whatever drops it before its end drops the client.
    deinit { end(.clientGone) }

    /// The next bytes; what was returned before must have been sent.
    func next(wake: @escaping @Sendable () -> Void) throws(CacheError) -> ContentRead.Turn {
        try read.nextAtOnce(wake: wake)
    }

    /// Bytes of the body are about to be written.
    func begins() {
        note.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch.elapsed }
        }
    }

    /// Bytes of the body have left.
    func sent(_ count: Int) {
        left -= Int64(count)
        note.update { $0.sentBytes += Int64(count) }
    }

    /// Tells the read and the log how it ended, the first time.
    func end(_ ending: ReadEnding) {
        guard !isOver else { return }
        isOver = true
        note.add(read.finish(ending))
        if case .sent = ending { note.update { $0.isComplete = true } }
        line.write()
    }
}

@available(*, unavailable)
extension ExpressAnswer: Sendable {}
