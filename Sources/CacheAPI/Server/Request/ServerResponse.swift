import CacheCore
import CacheEngine
import HTTPTypes
import NIOCore
import NIOHTTP1

/// The body of a response.
enum ResponseBody: Sendable {
    case empty
    case document(ByteBuffer)
    /// Content. `first` is never `.later`; it is `.end` for an empty body.
    case content(ContentBody, first: ContentRead.ReadStep)
    /// Bytes that the closure writes as they arise.
    case stream(@Sendable (ResponseWriter) async throws -> Void)

    var isContent: Bool { if case .content = self { true } else { false } }
}

/// Writes the body of a response, and counts its bytes.
struct ResponseWriter: Sendable {
    let channel: any Channel
    let logContext: RequestLogContext
    let stopwatch: @Sendable () -> Duration

    /// Returns when the socket has accepted the bytes. Throws when the connection is closed.
    func write(_ bytes: ByteBuffer) async throws {
        logContext.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch() }
        }
        try await channel.writeAndFlush(HTTPServerResponsePart.body(.byteBuffer(bytes)))
        logContext.update { $0.sentBytes += Int64(bytes.readableBytes) }
    }
}

/// A response that is ready to be sent: head, body with the first bytes of content, and access log entry.
final class ServerResponse: Sendable {
    let head: HTTPResponseHead
    let body: ResponseBody
    let logContext: RequestLogContext
    private let line: AccessLogEntry
    /// The request as the log names it.
    let logged: LoggedRequest
    /// Whether a signature authorized the request. It must be verified for each request.
    let isSigned: Bool

    init(
        head: HTTPResponseHead, body: ResponseBody, logContext: RequestLogContext, line: AccessLogEntry,
        logged: LoggedRequest, isSigned: Bool = false
    ) {
        self.head = head
        self.body = body
        self.logContext = logContext
        self.line = line
        self.logged = logged
        self.isSigned = isSigned
    }

    /// The read of content; nil for other bodies.
    var read: ContentRead? { if case .content(let body, _) = body { body.read } else { nil } }

    /// The same response with a further header field.
    func adding(_ name: HTTPField.Name, _ value: String) -> ServerResponse {
        var head = head
        head.headers.add(name: name.rawName, value: value)
        return ServerResponse(
            head: head, body: body, logContext: logContext, line: line, logged: logged, isSigned: isSigned)
    }

    /// Records sent bytes of a document.
    func sent(_ bytes: Int) { logContext.update { $0.sentBytes += Int64(bytes) } }

    /// Finishes the read and writes the access log entry. Further calls have no effect.
    func end(_ ending: ReadEnding) {
        if case .content(let body, _) = body { body.end(ending) }
        if case .sent = ending { logContext.update { $0.isComplete = true } }
        line.write()
    }
}
