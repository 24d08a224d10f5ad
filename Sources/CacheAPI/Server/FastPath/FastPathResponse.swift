import CacheEngine
import NIOHTTP1

/// A response of the fast path: head, body with the first bytes, and access log entry.
final class FastPathResponse {
    let head: HTTPResponseHead
    let body: ContentBody
    /// The first bytes of the body, or `.end` without a body; never `.later`.
    let first: ContentRead.ReadStep
    let note: RequestLogContext
    private let line: AccessLogEntry
    /// The request as the log names it.
    let logged: LoggedRequest
    /// Whether a signature authorized the request. It must be verified for each request.
    let isSigned: Bool

    init(
        head: HTTPResponseHead, body: ContentBody, first: ContentRead.ReadStep, note: RequestLogContext,
        line: AccessLogEntry, logged: LoggedRequest, isSigned: Bool = false
    ) {
        self.head = head
        self.body = body
        self.first = first
        self.note = note
        self.line = line
        self.logged = logged
        self.isSigned = isSigned
    }

    /// Finishes the read and writes the access log entry. Further calls have no effect.
    func end(_ ending: ReadEnding) {
        body.end(ending)
        if case .sent = ending { note.update { $0.isComplete = true } }
        line.write()
    }
}

@available(*, unavailable)
extension FastPathResponse: Sendable {}
