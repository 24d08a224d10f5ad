import CacheCore
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Stands behind the HTTP decoder of one connection: tells ``ClientPresence`` when the client leaves, answers what
/// cannot be parsed with a problem document, and gives up on clients that never send a request, or not all of it.
final class ConnectionWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let presence: ClientPresence
    private let headerTimeout: Duration
    private let halfClosedTimeout: Duration
    private let makeRequestID: @Sendable () -> String
    private var deadline: Scheduled<Void>?
    /// Set once the client has closed its sending side: when it counts as gone.
    private var leave: Scheduled<Void>?
    /// The requests whose heads are read and whose answers are not written yet.
    private var unanswered = 0
    /// Whether the last unanswered request is still coming, and whether the first has its response's head.
    private var isReading = false
    private var isAnswering = false
    private var isOver = false
    /// Whether the last word is said: nothing is written after it.
    private var isRefused = false
    /// What is refused once `owed` more answers are written.
    private var pending: (error: CacheError, owed: Int)?

    init(
        presence: ClientPresence, headerTimeout: Duration, halfClosedTimeout: Duration,
        makeRequestID: @escaping @Sendable () -> String
    ) {
        self.presence = presence
        self.headerTimeout = headerTimeout
        self.halfClosedTimeout = halfClosedTimeout
        self.makeRequestID = makeRequestID
    }

    func handlerAdded(context: ChannelHandlerContext) { expect(context, "No request came in time.") }

    /// Gives the client until the deadline to go on.
    private func expect(_ context: ChannelHandlerContext, _ reason: String) {
        deadline?.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: TimeAmount(headerTimeout)) {
            let (watch, context) = here.value
            watch.deadline = nil
            // A body that nobody reads does not come; its running response is not cut for that.
            guard !watch.isReading || !watch.isAnswering else { return }
            watch.refuse(CacheError(.requestTimedOut, reason), context)
        }
    }

    /// Gives a client that closed its sending side until the time-out to be sent something. Where it has gone for good
    /// that is answered by a reset; with bytes under way there is nothing to decide yet.
    private func awaitLeave(_ context: ChannelHandlerContext) {
        leave?.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        leave = context.eventLoop.scheduleTask(in: TimeAmount(halfClosedTimeout)) {
            let (watch, context) = here.value
            if context.channel.isWritable { watch.presence.left() } else { watch.awaitLeave(context) }
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        leave?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        switch unwrapInboundIn(data) {
        case .head:
            isReading = true
            unanswered += 1
            expect(context, "The request's body did not come in time.")
        case .body: expect(context, "The request's body did not come in time.")
        case .end:
            isReading = false
            deadline?.cancel()
            deadline = nil
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isRefused else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        if leave != nil { awaitLeave(context) }
        context.write(data, promise: promise)
        switch unwrapOutboundIn(data) {
        case .head: isAnswering = true
        case .body: break
        case .end:
            unanswered = max(0, unanswered - 1)
            isAnswering = false
            guard let (error, owed) = pending else { return }
            if owed > 1 { pending = (error, owed - 1) } else { answer(error, context) }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ByteWatch.Arrival {
            // The beginning of another request's head; the first one's time runs from the connection's beginning.
            if !isOver, unanswered == 0, deadline == nil { expect(context, "No request came in time.") }
            return
        }
        if case .inputClosed? = event as? ChannelEvent {
            if unanswered > 0 { awaitLeave(context) } else { presence.left() }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        leave?.cancel()
        presence.left()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? CacheError { return refuse(error, context) }
        guard let error = error as? HTTPParserError else { return context.fireErrorCaught(error) }
        switch error {
        case .headerOverflow: refuse(CacheError(.headersTooLarge, "The request's header is too large."), context)
        default: refuse(CacheError(.malformedRequest, "What came is not HTTP: \(error)."), context)
        }
    }

    /// Answers in place of the router, then closes. Requests that came whole get their answers before; where the
    /// refused one's own is under way, it is cut, since nothing can follow it.
    private func refuse(_ error: CacheError, _ context: ChannelHandlerContext) {
        guard !isOver else { return }
        isOver = true
        deadline?.cancel()
        let owed = unanswered - (isReading ? 1 : 0)
        if owed > 0 {
            pending = (error, owed)
        } else if isAnswering {
            context.close(promise: nil)
        } else {
            answer(error, context)
        }
    }

    private func answer(_ error: CacheError, _ context: ChannelHandlerContext) {
        isRefused = true
        let id = makeRequestID()
        let body = ByteBuffer(string: Problem(error, instance: "", requestID: id).json.text + "\n")
        var fields = error.code.headers
        fields[.contentType] = Problem.mediaType
        fields[.contentLength] = "\(body.readableBytes)"
        fields[.cacheControl] = "no-store"
        fields[.connection] = "close"
        fields[.requestID] = id
        let head = HTTPResponse(status: .init(code: error.code.status), headerFields: fields)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: nil)
        let here = NIOLoopBound(context, eventLoop: context.eventLoop)
        // Closing drops what is not flushed yet.
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in here.value.close(promise: nil) }
    }
}

@available(*, unavailable)
extension ConnectionWatch: Sendable {}
