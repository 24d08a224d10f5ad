import CacheCore
import Glibc
import NIOCore
import NIOHTTP1
import NIOSSL

/// Channel handler that adapts each response to the HTTP version of its request.
///
/// - It sets exactly one `Date` (RFC 9110 §6.6.1).
/// - It sets `Connection: close` on the last response and closes after it, and `keep-alive` for HTTP/1.0
///   (RFC 9112 §9.3).
/// - It makes an incomplete body detectable. A body of unknown length is chunked. HTTP/1.0 has no chunks; there the
///   body ends with the connection, and an abort resets the connection.
/// - It sends `100 (Continue)` if the client waits for it (RFC 9110 §10.1.1).
///
/// It stands between the HTTP decoder and Hummingbird's codec, which drops the version.
final class HTTP1FramingHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The properties of a request that its response depends on.
    private struct RequestProperties {
        var isHead = false
        /// Whether the request is HTTP/1.0.
        var isOld = false
        /// Whether the connection ends after this request.
        var isLast = false
        /// Whether the client waits for `100 (Continue)` before it sends the body.
        var awaitsContinue = false
    }

    /// The response that is being written: its head has passed, its end has not.
    private struct Answer {
        var question: RequestProperties
        /// Whether the end must be withheld from the encoder, which would write the last chunk of a body that a
        /// response to HEAD does not have.
        var hidesEnd: Bool
        /// Whether the end of the connection ends the body (HTTP/1.0 without `Content-Length`).
        var endsWithConnection: Bool
    }

    private let wallClock: any WallClock
    private let limits: APISettings.Limits
    /// Nil: the connection gets one error response. A reserved permit is for one health check.
    private let permit: ConnectionPermits.Permit?
    /// Requests without a response head, the oldest first.
    private var questions: [RequestProperties] = []
    /// Nil between two responses.
    private var answer: Answer?
    /// Set by the head of the last request: everything after its body is ignored (RFC 9112 §9.6).
    private var isOver = false
    /// Whether a request is not received completely.
    private var isReading = false

    init(wallClock: any WallClock, limits: APISettings.Limits, permit: ConnectionPermits.Permit?) {
        self.wallClock = wallClock
        self.limits = limits
        self.permit = permit
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard isReading || !isOver else { return }
        switch part {
        case .head(let head):
            isReading = true
            // The router answers 413 from the head. It is the last response, because the body is not read.
            let isTooLong = Self.bodyLength(head).map { $0 > limits.bodyBytes(ofPath: head.uri) } ?? false
            // HTTP/1.0 has no transfer codings, so the framing is faulty (RFC 9112 §6.1).
            let isFaulty = head.version == .http1_0 && head.headers.contains(name: "Transfer-Encoding")
            isOver = isForOneRequest(head) || isTooLong || isFaulty || !head.isKeepAlive
            questions.append(
                RequestProperties(
                    isHead: head.method == .HEAD, isOld: head.version == .http1_0, isLast: isOver,
                    awaitsContinue: Self.awaitsContinue(head) && !isTooLong))
            letContinue(context)
        case .body, .end:
            if !questions.isEmpty { questions[questions.count - 1].awaitsContinue = false }
            if case .end = part { isReading = false }
        }
        context.fireChannelRead(data)
    }

    /// Whether the connection is closed after the response to this request. Requests other than health checks change a
    /// reserved permit to a regular one, or are rejected.
    private func isForOneRequest(_ head: HTTPRequestHead) -> Bool {
        guard let permit else { return true }
        return ConnectionPermits.isHealthCheck(head.uri) && permit.isReserved
    }

    /// Sends `100 (Continue)` for the oldest request without a response if its client waits for it (RFC 9110 §10.1.1).
    private func letContinue(_ context: ChannelHandlerContext) {
        guard answer == nil, questions.first?.awaitsContinue ?? false else { return }
        questions[0].awaitsContinue = false
        let interim = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Bytes after the last request are not a request; their parser errors are ignored.
        if isOver, !isReading, error is HTTPParserError || error is CacheError { return }
        context.fireErrorCaught(error)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head): context.write(wrapOutboundOut(.head(ruled(head))), promise: promise)
        case .body: context.write(data, promise: promise)
        case .end:
            let ended = answer
            answer = nil
            let end = ended?.hidesEnd ?? false ? wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))) : data
            guard ended?.question.isLast ?? false else {
                context.write(end, promise: promise)
                return letContinue(context)
            }
            // Close the output side only. After a full close, bytes that the client still sends would cause a reset,
            // which can discard the response before the client has read it (RFC 9112 §9.6). The idle time-out closes
            // the rest.
            let here = NIOLoopBound(context, eventLoop: context.eventLoop)
            let written = promise ?? context.eventLoop.makePromise()
            written.futureResult.whenSuccess { here.value.close(mode: .output, promise: nil) }
            context.writeAndFlush(end, promise: written)
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode != .input, answer?.endsWithConnection ?? false else {
            return context.close(mode: mode, promise: promise)
        }
        // The body ends with the connection. An orderly close (also of TLS) would make an incomplete body look
        // complete, so SO_LINGER 0 turns the close into a reset.
        (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            .whenFailure { _ in }
        let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)  // none: no TLS
        (tls ?? context).close(mode: .all, promise: promise)
    }

    /// Returns the response head with `Date`, `Connection` and version set, and records the framing of its body.
    /// Interim responses (1xx) are returned unchanged.
    private func ruled(_ original: HTTPResponseHead) -> HTTPResponseHead {
        var head = original
        if (100..<200).contains(head.status.code) { return head }
        if let date = head.headers.first(name: Self.contentDate) {
            head.headers.replaceOrAdd(name: "Date", value: date)
            head.headers.remove(name: Self.contentDate)
        } else if !head.headers.contains(name: "Date") {
            head.headers.add(name: "Date", value: HTTPDate.format(wallClock.now()))
        }
        var question = questions.isEmpty ? RequestProperties() : questions.removeFirst()
        let mayHaveBody = head.status.mayHaveResponseBody
        let isUnbounded = mayHaveBody && !head.headers.contains(name: "Content-Length")
        if isUnbounded, question.isOld {
            head.version = .http1_0
            question.isLast = question.isLast || !question.isHead
        }
        // A response that ends the connection before its request has been read completely.
        if head.headers[canonicalForm: "Connection"].contains(where: { $0 == "close" }) {
            question.isLast = true
            isOver = true
        }
        if question.isLast {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        } else if question.isOld {
            head.headers.replaceOrAdd(name: "Connection", value: "keep-alive")
        }
        answer = Answer(
            question: question, hidesEnd: isUnbounded && question.isHead,
            endsWithConnection: isUnbounded && question.isOld && !question.isHead)
        return head
    }

    /// The declared `Content-Length`; `Int.max` if it is not a number, nil without the field.
    private static func bodyLength(_ head: HTTPRequestHead) -> Int? {
        head.headers[canonicalForm: "Content-Length"].first.map { Int($0) ?? .max }
    }

    /// Whether the client sends the body only after `100 (Continue)` (RFC 9110 §10.1.1).
    private static func awaitsContinue(_ head: HTTPRequestHead) -> Bool {
        let hasBody = head.headers.contains(name: "Transfer-Encoding") || (bodyLength(head) ?? 0) > 0
        return hasBody && head.version == .http1_1
            && head.headers[canonicalForm: "Expect"].contains { $0.lowercased() == "100-continue" }
    }

    /// Internal field that carries a response's own date past Hummingbird, which sets `Date` to the current time.
    static let contentDate = "Larder-Content-Date"
}

@available(*, unavailable)
extension HTTP1FramingHandler: Sendable {}
