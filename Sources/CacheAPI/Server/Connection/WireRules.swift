import CacheCore
import Glibc
import NIOCore
import NIOHTTP1
import NIOSSL

/// What every response on a connection owes to its request's HTTP version: one `Date` (RFC 9110 §6.6.1), the
/// `Connection` that says whether another request may follow (RFC 9112 §9.3), and a body whose end no client can
/// mistake.
///
/// A body of unknown length is chunked; for HTTP/1.0, which has no chunks, it ends with the connection, and a break in
/// it resets the connection. Stands between the HTTP decoder and the translation that forgets versions.
final class WireRules: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private struct Question {
        var isHead = false
        /// Whether it came in HTTP/1.0.
        var isOld = false
        /// Whether its client, or its version, wants no other request after it.
        var isLast = false
        /// Whether its client waits for `100 (Continue)` before it sends the body.
        var awaitsContinue = false
    }

    private struct Answer {
        var question: Question
        /// Whether the encoder would put a mark at the end of a body that a HEAD does not have.
        var hidesEnd: Bool
        var endsWithConnection: Bool
    }

    private let wallClock: any WallClock
    private let limits: APISettings.Limits
    /// Whether the connection is closed after its first response.
    private let isForOneRequest: Bool
    private var questions: [Question] = []
    private var answer: Answer?
    /// The last request's head has come: what follows its body is not listened to (RFC 9112 §9.6).
    private var isOver = false
    private var isReading = false

    init(wallClock: any WallClock, limits: APISettings.Limits, isForOneRequest: Bool) {
        self.wallClock = wallClock
        self.limits = limits
        self.isForOneRequest = isForOneRequest
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard isReading || !isOver else { return }
        switch part {
        case .head(let head):
            isReading = true
            // The router answers 413 from the head. It is the last response, because the body is not read.
            let isTooLong = Self.bodyLength(head).map { $0 > limits.bodyBytes(ofPath: head.uri) } ?? false
            // HTTP/1.0 has no transfer codings: the framing is faulty (RFC 9112 §6.1).
            let isFaulty = head.version == .http1_0 && head.headers.contains(name: "Transfer-Encoding")
            isOver = isForOneRequest || isTooLong || isFaulty || !head.isKeepAlive
            questions.append(
                Question(
                    isHead: head.method == .HEAD, isOld: head.version == .http1_0, isLast: isOver,
                    awaitsContinue: Self.awaitsContinue(head) && !isTooLong))
            letContinue(context)
        case .body, .end:
            if !questions.isEmpty { questions[questions.count - 1].awaitsContinue = false }
            if case .end = part { isReading = false }
        }
        context.fireChannelRead(data)
    }

    /// Asks for the body of the oldest request without a response, if its client waits for that (RFC 9110 §10.1.1).
    private func letContinue(_ context: ChannelHandlerContext) {
        guard answer == nil, questions.first?.awaitsContinue ?? false else { return }
        questions[0].awaitsContinue = false
        let interim = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Whatever is behind the last request is no request.
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
            // The output alone: what the client still sends must not reset the connection before it has read all of
            // this (§9.6). The idle time-out closes the rest.
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
        // An orderly end would pass the part for the whole, so would TLS's.
        (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            .whenFailure { _ in }
        let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)  // none: no TLS
        (tls ?? context).close(mode: .all, promise: promise)
    }

    private func ruled(_ original: HTTPResponseHead) -> HTTPResponseHead {
        var head = original
        if (100..<200).contains(head.status.code) { return head }
        if let date = head.headers.first(name: Self.contentDate) {
            head.headers.replaceOrAdd(name: "Date", value: date)
            head.headers.remove(name: Self.contentDate)
        } else if !head.headers.contains(name: "Date") {
            head.headers.add(name: "Date", value: HTTPDate.format(wallClock.now()))
        }
        var question = questions.isEmpty ? Question() : questions.removeFirst()
        let mayHaveBody = head.status.mayHaveResponseBody
        let isUnbounded = mayHaveBody && !head.headers.contains(name: "Content-Length")
        if isUnbounded, question.isOld {
            head.version = .http1_0
            question.isLast = question.isLast || !question.isHead
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

    private static func bodyLength(_ head: HTTPRequestHead) -> Int? {
        head.headers[canonicalForm: "Content-Length"].first.map { Int($0) ?? .max }
    }

    /// Whether the client holds its body back until it is told to go on (RFC 9110 §10.1.1).
    private static func awaitsContinue(_ head: HTTPRequestHead) -> Bool {
        let hasBody = head.headers.contains(name: "Transfer-Encoding") || (bodyLength(head) ?? 0) > 0
        return hasBody && head.version == .http1_1
            && head.headers[canonicalForm: "Expect"].contains { $0.lowercased() == "100-continue" }
    }

    /// Carries a response's own date past the framework, which puts the present into every `Date`.
    static let contentDate = "Larder-Content-Date"
}

@available(*, unavailable)
extension WireRules: Sendable {}
