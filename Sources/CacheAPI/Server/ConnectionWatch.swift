import CacheCore
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Stands behind the HTTP decoder of one connection: tells ``ClientPresence`` when the client leaves, answers what
/// cannot be parsed with a problem document, and gives up on clients that never send a request.
final class ConnectionWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let presence: ClientPresence
    private let headerTimeout: Duration
    private let makeRequestID: @Sendable () -> String
    private var deadline: Scheduled<Void>?
    /// The requests that are read and not answered yet: whether each is a HEAD.
    private var unanswered: [Bool] = []
    /// Whether the response under way is framed by chunks.
    private var isChunked = false
    private var isOver = false

    init(presence: ClientPresence, headerTimeout: Duration, makeRequestID: @escaping @Sendable () -> String) {
        self.presence = presence
        self.headerTimeout = headerTimeout
        self.makeRequestID = makeRequestID
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: TimeAmount(headerTimeout)) {
            let (watch, context) = here.value
            watch.refuse(CacheError(.requestTimedOut, "No request came in time."), context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data) {
            deadline?.cancel()
            unanswered.append(head.method == .head)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head):
            isChunked = !head.headerFields.contains(.contentLength) && ![204, 304].contains(head.status.code)
        case .body: break
        case .end:
            let isHead = unanswered.isEmpty ? false : unanswered.removeFirst()
            // The encoder would end even the body that a HEAD does not have with a last chunk, in front of the next
            // response.
            if isHead, isChunked { return context.write(wrapOutboundOut(.body(ByteBuffer())), promise: promise) }
        }
        context.write(data, promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { presence.left() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        presence.left()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else { return context.fireErrorCaught(error) }
        switch error {
        case .headerOverflow: refuse(CacheError(.headersTooLarge, "The request's header is too large."), context)
        default: refuse(CacheError(.malformedRequest, "What came is not HTTP: \(error)."), context)
        }
    }

    /// Answers in place of the router, then closes; a response under way is cut, since nothing can follow it.
    private func refuse(_ error: CacheError, _ context: ChannelHandlerContext) {
        guard !isOver else { return }
        isOver = true
        guard unanswered.isEmpty else { return context.close(promise: nil) }
        let id = makeRequestID()
        let body = ByteBuffer(string: Problem(error, instance: "", requestID: id).json.text + "\n")
        let head = HTTPResponse(
            status: .init(code: error.code.status),
            headerFields: [
                .contentType: "application/problem+json", .contentLength: "\(body.readableBytes)",
                .connection: "close", .requestID: id,
            ])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        context.close(promise: nil)
    }
}

@available(*, unavailable)
extension ConnectionWatch: Sendable {}
