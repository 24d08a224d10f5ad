import CacheCore
import CacheEngine
import DequeModule
import NIOCore
import NIOHTTP1

/// Channel handler of the fast path: answers requests on the event loop if ``FastPathResponder`` can, and forwards all
/// others unchanged to the regular path.
///
/// Responses are sent in the order of their requests (RFC 9112 §9.3.2):
/// - While the regular path owes a response, all requests are forwarded.
/// - While this handler sends a response, further requests wait in `waiting`, and reading from the socket stops.
final class FastPathHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The state of the request stream.
    private enum Phase {
        /// Between two requests.
        case open
        /// The head of a candidate was received; its end is expected.
        case asked(HTTPRequestHead)
        /// A request is being forwarded to the regular path.
        case passing
        /// This handler sends a response.
        case answering(FastPathResponse)
        /// A response was aborted: nothing more is sent on this connection.
        case closed
    }

    private let responder: FastPathResponder
    private let sendBuffer: SendBufferTuning
    /// Nil if the connection has no prepared responses.
    private let preparedResponses: PreparedResponseHandler?
    /// The client certificate of the connection; nil without client authentication.
    private let certificate: ClientCertificate?
    private var phase = Phase.open
    /// Forwarded requests without a complete response.
    private var owed = 0
    /// Request parts received during a response of this handler. While it is not empty, no read is issued.
    private var waiting = Deque<HTTPServerRequestPart>()
    /// Whether a `read` was held back because of `waiting`.
    private var isReadHeld = false
    /// Whether the event "input closed" was held back. The regular path would close the connection during the response.
    private var isInputEndHeld = false
    /// Prevents recursion of ``catchUp(_:)`` through a response that is sent at once.
    private var isCatchingUp = false
    /// Sends the body of the current response.
    private var sender: BodySender?
    /// Nil before the handler is added and after it is removed.
    private var context: ChannelHandlerContext?

    init(
        responder: FastPathResponder, sendBuffer: SendBufferTuning, preparedResponses: PreparedResponseHandler?,
        certificate: ClientCertificate? = nil
    ) {
        self.responder = responder
        self.sendBuffer = sendBuffer
        self.preparedResponses = preparedResponses
        self.certificate = certificate
        preparedResponses?.handler = self
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isAnswering { waiting.append(unwrapInboundIn(data)) } else { take(unwrapInboundIn(data), context) }
    }

    private var isAnswering: Bool { if case .answering = phase { true } else { false } }

    /// Processes one request part. A candidate's head is kept until the request's end, because only a request without a
    /// body and trailers is answered here.
    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch (phase, part) {
        case (.open, .head(let head)) where owed == 0 && FastPathResponder.takes(head): phase = .asked(head)
        case (.asked(let head), .end(nil)):
            let answer = responder.answer(
                head, certificate: certificate, client: context.channel.remoteAddress?.ipAddress)
            if let answer {
                preparedResponses?.learn(head, answer)
                return begin(answer, context)
            }
            pass(.head(head), context)
            pass(part, context)
        case (.asked(let head), _):
            pass(.head(head), context)
            pass(part, context)
        case (.closed, _), (.answering, _): break
        case (.open, _), (.passing, _): pass(part, context)
        }
    }

    /// Forwards one request part to the regular path.
    private func pass(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head:
            owed += 1
            phase = .passing
        case .body: break
        case .end: phase = .open
        }
        context.fireChannelRead(wrapInboundOut(part))
    }

    /// Counts the completed responses of the regular path. Responses of this handler do not pass here, because it
    /// writes them through its own context.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) { owed -= 1 }
        context.write(data, promise: promise)
    }

    func read(context: ChannelHandlerContext) {
        if waiting.isEmpty { context.read() } else { isReadHeld = true }
    }

    /// Processes the parts in `waiting` after a response has ended, until the next one starts. Then fires the events
    /// and the read that were held back.
    private func catchUp(_ context: ChannelHandlerContext) {
        guard !isCatchingUp else { return }
        isCatchingUp = true
        let isBehind = !waiting.isEmpty
        while !isAnswering, let part = waiting.popFirst() { take(part, context) }
        isCatchingUp = false
        if isBehind { context.fireChannelReadComplete() }
        guard !isAnswering else { return }
        if isInputEndHeld {
            isInputEndHeld = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
        guard isReadHeld else { return }
        isReadHeld = false
        context.read()
    }

    // MARK: Responses

    /// Sends a response for ``PreparedResponseHandler``. Its request has bypassed this handler, and the connection has
    /// no other request in progress.
    func give(_ answer: FastPathResponse) {
        guard let context else { return answer.end(.clientGone) }
        begin(answer, context)
    }

    /// Writes the head and starts the body.
    private func begin(_ answer: FastPathResponse, _ context: ChannelHandlerContext) {
        phase = .answering(answer)
        context.write(wrapOutboundOut(.head(answer.head)), promise: nil)
        if case .end = answer.first { return sendEnd(of: answer, context) }
        let sender = BodySender(answer.body, on: context, sendsFiles: responder.sendsFiles, endsAnswer: true) {
            [weak self] ending in
            guard case .sent = ending else { return self?.end(ending, context) ?? () }
            self?.finish(answer, context)
        }
        self.sender = sender
        sendBuffer.fit(to: answer.body.read, on: context.channel)
        sender.start(answer.first)
    }

    /// Ends a response that has no body.
    private func sendEnd(of answer: FastPathResponse, _ context: ChannelHandlerContext) {
        let here = NIOLoopBound((self, answer, context), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { result in
            let (handler, answer, context) = here.value
            guard case .answering(let current) = handler.phase, current === answer else { return }
            if case .success = result { handler.finish(answer, context) } else { handler.end(.clientGone, context) }
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    /// Completes a response and continues with waiting requests.
    private func finish(_ answer: FastPathResponse, _ context: ChannelHandlerContext) {
        (phase, sender) = (.open, nil)
        answer.end(.sent)
        catchUp(context)
    }

    /// Aborts the response by closing the connection, so that no client takes an incomplete body for a complete one.
    private func end(_ ending: ReadEnding, _ context: ChannelHandlerContext) {
        stop(ending)
        context.close(promise: nil)
    }

    /// Stops the response and discards waiting requests. Has no effect between responses.
    private func stop(_ ending: ReadEnding) {
        guard case .answering(let answer) = phase else { return }
        phase = .closed
        waiting = []
        sender?.stop(ending)
        sender = nil
        answer.end(ending)
    }

    // MARK: The connection

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard isAnswering else { return context.fireUserInboundEventTriggered(event) }
        if case .inputClosed? = event as? ChannelEvent {
            isInputEndHeld = true
        } else if event is ConnectionTimeoutHandler.ClientDisconnected {
            end(.clientGone, context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop(.clientGone)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        stop(.clientGone)
        self.context = nil
    }
}

@available(*, unavailable)
extension FastPathHandler: Sendable {}
