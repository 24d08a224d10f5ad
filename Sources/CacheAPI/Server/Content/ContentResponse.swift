import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore
import NIOHTTP1

/// A response to a content request: head, body with the first bytes, and access log entry.
final class ContentResponse: Sendable {
    enum Body: Sendable {
        case empty
        /// A problem document.
        case document(ByteBuffer)
        /// Content. `first` is never `.later`; it is `.end` for an empty body.
        case content(ContentBody, first: ContentRead.ReadStep)
    }

    let head: HTTPResponseHead
    let body: Body
    let note: RequestLogContext
    private let line: AccessLogEntry
    /// The request as the log names it.
    let logged: LoggedRequest
    /// Whether a signature authorized the request. It must be verified for each request.
    let isSigned: Bool

    init(
        head: HTTPResponseHead, body: Body, note: RequestLogContext, line: AccessLogEntry, logged: LoggedRequest,
        isSigned: Bool = false
    ) {
        self.head = head
        self.body = body
        self.note = note
        self.line = line
        self.logged = logged
        self.isSigned = isSigned
    }

    /// The read; nil for a problem document and for an empty body.
    var read: ContentRead? { if case .content(let body, _) = body { body.read } else { nil } }

    /// The same response with a further header field.
    func adding(_ name: HTTPField.Name, _ value: String) -> ContentResponse {
        var head = head
        head.headers.add(name: name.rawName, value: value)
        return ContentResponse(head: head, body: body, note: note, line: line, logged: logged, isSigned: isSigned)
    }

    /// Records sent bytes of a problem document.
    func sent(_ bytes: Int) { note.update { $0.sentBytes += Int64(bytes) } }

    /// Finishes the read and writes the access log entry. Further calls have no effect.
    func end(_ ending: ReadEnding) {
        if case .content(let body, _) = body { body.end(ending) }
        if case .sent = ending { note.update { $0.isComplete = true } }
        line.write()
    }
}
