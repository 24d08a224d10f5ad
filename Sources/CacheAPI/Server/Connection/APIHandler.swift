import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1

/// The last channel handler of a connection: answers all requests but those for content.
///
/// A task of the event loop makes each response. Unlike that of content it is not cancelled when the client disconnects:
/// a purge, for example, is completed. Routes that wait for long watch ``APIConnection/disconnection``.
final class APIHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let responder: APIResponder
    private let connection: APIConnection
    /// The body of the request that is being received; nil: none, or the rest of it is discarded.
    private var body: RequestBody.Source?
    /// Whether a response is owed, or is being sent.
    private var isAnswering = false
    /// Whether the reader of the body has more unread bytes than it wants.
    private var isFull = false
    /// Whether a read was held back because of `isFull`.
    private var isReadHeld = false
    /// Nil before the handler is added, and when the connection has ended.
    private var context: ChannelHandlerContext?

    init(_ responder: APIResponder, _ connection: APIConnection) {
        self.responder = responder
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): begin(head, context)
        case .body(let bytes): if let body { isFull = !body.add(bytes) }
        case .end: endBody()
        }
    }

    func read(context: ChannelHandlerContext) {
        isReadHeld = isFull
        if !isFull { context.read() }
    }

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let here = NIOLoopBound(self, eventLoop: context.eventLoop)
        var received = RequestBody.empty
        if head.hasBody {
            (body, received) = RequestBody.receiving { [eventLoop = context.eventLoop] in
                eventLoop.execute { here.value.resume() }
            }
        }
        isAnswering = true
        let (responder, connection) = (responder, connection)
        let call = responder.processor.call(
            head, certificate: connection.certificate, client: connection.client.client(of: head))
        Task.immediate(executorPreference: EventLoopExecutor(context.eventLoop)) { [received] in
            let response = await responder.answer(call, received, on: connection)
            guard here.value.begin(response) else { return }
            if case .stream(let send) = response.body {
                let writer = ResponseWriter(
                    channel: connection.channel, logContext: response.logContext, stopwatch: call.stopwatch)
                do {
                    try await send(writer)
                } catch {
                    return here.value.cut(response)
                }
                here.value.sendEnd(of: response)
            }
        }
    }

    /// The reader of the body wants more bytes, or no more at all.
    private func resume() {
        isFull = false
        guard isReadHeld else { return }
        isReadHeld = false
        context?.read()
    }

    private func endBody() {
        body?.end()
        body = nil
        resume()
    }

    // MARK: Responses

    /// Writes the head, and all of a response but a stream. Returns false if the connection has ended.
    private func begin(_ response: ServerResponse) -> Bool {
        guard let context else {
            response.end(.clientGone)
            return false
        }
        context.write(wrapOutboundOut(.head(response.head)), promise: nil)
        switch response.body {
        case .document(let bytes):
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: nil)
            sendEnd(of: response, bytes.readableBytes)
        case .empty, .content: sendEnd(of: response)
        case .stream: break
        }
        return true
    }

    /// Ends a response, of which `bytes` of a document are written.
    private func sendEnd(of response: ServerResponse, _ bytes: Int = 0) {
        guard let context else { return response.end(.clientGone) }
        isAnswering = false
        // The rest of a body that the route has not read is discarded.
        body?.fail(CancellationError())
        body = nil
        resume()
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { result in
            guard case .success = result else { return response.end(.clientGone) }
            response.sent(bytes)
            response.end(.sent)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    /// Closes the connection, so that no client takes the incomplete body for a complete one.
    private func cut(_ response: ServerResponse) {
        response.end(.clientGone)
        context?.close(promise: nil)
    }

    // MARK: The connection

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        // The request is incomplete, and nothing is owed to it.
        case is HTTPConnectionHandler.ClientDisconnected where body != nil && isAnswering: context.close(promise: nil)
        case ChannelEvent.inputClosed where !isAnswering: context.close(mode: .output, promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    private func end() {
        context = nil
        body?.fail(CancellationError())
        body = nil
    }
}

@available(*, unavailable)
extension APIHandler: Sendable {}
