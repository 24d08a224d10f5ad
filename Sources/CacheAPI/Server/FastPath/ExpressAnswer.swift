import CacheEngine
import NIOHTTP1

/// One answer of the express lane: its head, its body with the first bytes, and its line in the access log.
final class ExpressAnswer {
    let head: HTTPResponseHead
    let body: ContentBody
    let first: ContentRead.Turn
    private let note: RequestNote
    private let line: AccessLine

    init(
        head: HTTPResponseHead, body: ContentBody, first: ContentRead.Turn, note: RequestNote, line: AccessLine
    ) {
        self.head = head
        self.body = body
        self.first = first
        self.note = note
        self.line = line
    }

    /// Tells the read and the log how it ended, the first time.
    func end(_ ending: ReadEnding) {
        body.end(ending)
        if case .sent = ending { note.update { $0.isComplete = true } }
        line.write()
    }
}

@available(*, unavailable)
extension ExpressAnswer: Sendable {}
