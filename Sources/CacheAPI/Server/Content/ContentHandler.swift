import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1
import ReaderAccess

/// Channel handler that answers all requests for content, on the event loop, and passes on all others to ``APIHandler``.
///
/// A GET for content is answered in one of three ways:
/// 1. If it differs from an earlier one in `Range` only, ``PreparedResponseSender`` sends a prepared response before the
///    request is decoded.
/// 2. If no wait is needed, ``ContentResponder/answerAtOnce(_:)`` makes the response; it may be prepared for others.
/// 3. Otherwise a task waits for ``ContentResponder/answer(_:)``. It is cancelled when the client disconnects.
///
/// ``HTTPConnectionHandler`` passes on one request at a time, so that responses are sent in the order of their requests
/// (RFC 9112 §9.3.2).
final class ContentHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// The state of the current request.
    private enum Phase {
        /// No head was received, or the response was sent. The rest of that request is discarded.
        case open
        /// The head of a GET or HEAD without a body was received; its end is expected.
        case asked(HTTPRequestHead)
        /// A request is being passed on to ``APIHandler``.
        case passing
        /// A task waits for the response.
        case reading
        /// This handler sends a response.
        case answering(ServerResponse)
        /// A response was aborted: nothing more is sent on this connection.
        case closed
    }

    private let responder: ContentResponder
    private let sendBuffer: SendBufferTuning
    /// The rates of limited readers.
    private let rates: ReaderRates
    /// The client certificate of the connection; nil without client authentication.
    private let certificate: ClientCertificate?
    /// Nil without a connection (tests).
    private let client: ConnectionClient?
    /// Nil without prepared responses.
    private let prepared: PreparedResponseSender?
    /// Nil before the handler is added and after it is removed.
    private var context: ChannelHandlerContext?
    private var phase = Phase.open
    /// Waits for the response in the phase `reading`.
    private var task: Task<Void, Never>?
    /// Sends the body of the current response.
    private var sender: BodySender?

    init(
        responder: ContentResponder, sendBuffer: SendBufferTuning, rates: ReaderRates,
        prepared: PreparedResponseSender?, certificate: ClientCertificate? = nil, client: ConnectionClient? = nil
    ) {
        self.responder = responder
        self.sendBuffer = sendBuffer
        self.rates = rates
        self.prepared = prepared
        self.certificate = certificate
        self.client = client
        prepared?.handler = self
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    // MARK: Requests

    /// The response to a request without a body starts at the request's end. The body of a request for content is
    /// discarded.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch (phase, part) {
        case (.open, .head(let head)):
            guard ContentCall.isMethod(head.method) else { return pass(part, context) }
            guard head.hasBody else { return phase = .asked(head) }
            if !answer(head, context) { pass(part, context) }
        case (.asked(let head), .end):
            phase = .open
            guard !answer(head, context) else { return }
            pass(.head(head), context)
            pass(part, context)
        case (.passing, _): pass(part, context)
        default: break
        }
    }

    /// Passes on one part of a request to ``APIHandler``.
    private func pass(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head: phase = .passing
        case .body: break
        case .end: phase = .open
        }
        context.fireChannelRead(wrapInboundOut(part))
    }

    // MARK: Responses

    /// Sends a response for ``PreparedResponseSender``. Its request has bypassed this handler, and the connection has no
    /// other request in progress.
    func send(_ response: ServerResponse) {
        guard let context else { return response.end(.clientGone) }
        begin(response, context)
    }

    /// Starts the response to a content request. Returns false if the request does not name content.
    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) -> Bool {
        let call = responder.call(head, certificate: certificate, client: client?.client(of: head))
        guard let call else { return false }
        if let response = responder.answerAtOnce(call) {
            prepared?.learn(head, response)
            begin(response, context)
        } else {
            wait(for: call, context)
        }
        return true
    }

    /// Starts a task that waits for the response. It runs on the event loop: each hop to another thread would cost more
    /// than the work of most requests.
    private func wait(for call: ContentCall, _ context: ChannelHandlerContext) {
        phase = .reading
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let responder = responder
        task = Task.immediate(executorPreference: EventLoopExecutor(context.eventLoop)) {
            let response = await responder.answer(call)
            here.value.0.arrived(response, here.value.1)
        }
    }

    /// Sends the response that was awaited, unless the client has disconnected.
    private func arrived(_ response: ServerResponse, _ context: ChannelHandlerContext) {
        guard case .reading = phase else { return response.end(.clientGone) }
        begin(response, context)
    }

    /// Writes the head and starts the body.
    private func begin(_ response: ServerResponse, _ context: ChannelHandlerContext) {
        phase = .answering(response)
        context.write(wrapOutboundOut(.head(response.head)), promise: nil)
        switch response.body {
        case .empty, .stream, .content(_, first: .end): sendEnd(of: response, 0, context)
        case .document(let bytes):
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
            sendEnd(of: response, bytes.readableBytes, context)
        case .content(let body, let first):
            let sender = BodySender(
                body, on: context, sendsFiles: responder.sendsFiles, pace: BodySender.Pace(body.reader, rates)
            ) { [weak self] ending in
                guard case .sent = ending else { return self?.end(ending, context) ?? () }
                self?.finish(response)
            }
            self.sender = sender
            sendBuffer.fit(to: body.read, on: context.channel)
            sender.start(first)
        }
    }

    /// Ends a response of which everything is written, with a document of `bytes`.
    private func sendEnd(of response: ServerResponse, _ bytes: Int, _ context: ChannelHandlerContext) {
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { result in
            let (handler, context) = here.value
            guard case .answering(let current) = handler.phase, current === response else { return }
            guard case .success = result else { return handler.end(.clientGone, context) }
            response.sent(bytes)
            handler.finish(response)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    private func finish(_ response: ServerResponse) {
        (phase, sender, task) = (.open, nil, nil)
        response.end(.sent)
    }

    /// Aborts the response by closing the connection, so that no client takes an incomplete body for a complete one.
    private func end(_ ending: ReadEnding, _ context: ChannelHandlerContext) {
        stop(ending)
        context.close(promise: nil)
    }

    /// Stops the response, or the wait for it. Has no effect between responses.
    private func stop(_ ending: ReadEnding) {
        let current = phase
        switch current {
        case .reading, .answering: phase = .closed
        case .open, .asked, .passing, .closed: return
        }
        task?.cancel()
        task = nil
        sender?.stop(ending)
        sender = nil
        if case .answering(let response) = current { response.end(ending) }
    }

    // MARK: The connection

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is HTTPConnectionHandler.ClientDisconnected else {
            return context.fireUserInboundEventTriggered(event)
        }
        switch phase {
        case .reading, .answering: end(.clientGone, context)
        case .open, .asked, .passing, .closed: break
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
extension ContentHandler: Sendable {}
