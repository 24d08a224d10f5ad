import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1
import ReaderAccess

/// Channel handler that sends content bodies for the regular path.
///
/// Hummingbird writes the head and the end of the response. The bytes in between bypass it: the response body passes a
/// ``ContentBody`` to this handler through ``Handle`` and waits until it was sent.
///
/// The send request and the response head can arrive in either order. The second one starts the body, see ``begin()``.
final class BodyStreamHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Thread-safe reference to the handler, for tasks that do not run on its event loop.
    struct Handle: Sendable {
        /// The handle of the running request's connection; nil without a connection.
        @TaskLocal static var current: Handle?

        private let handler: NIOLoopBound<BodyStreamHandler>
        private let eventLoop: any EventLoop

        init(_ handler: BodyStreamHandler, on eventLoop: any EventLoop) {
            self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
            self.eventLoop = eventLoop
        }

        /// Sends `first` and the rest of the body, and finishes the read. Cancellation of the task stops it.
        ///
        /// If it throws, the connection is closed, so that no client takes an incomplete body for a complete one.
        func send(_ body: ContentBody, first: ByteBuffer?) async throws {
            let sent = eventLoop.makePromise(of: Void.self)
            let handler = handler
            eventLoop.execute { handler.value.take(SendRequest(body: body, first: first, sent: sent)) }
            try await withTaskCancellationHandler {
                try await sent.futureResult.get()
            } onCancel: {
                eventLoop.execute { handler.value.giveUp(body) }
            }
        }
    }

    /// A body to send, and the promise that is fulfilled when it was sent.
    private struct SendRequest {
        let body: ContentBody
        let first: ByteBuffer?
        let sent: EventLoopPromise<Void>
    }

    private let sendsFiles: Bool
    private let sendBuffer: SendBufferTuning
    /// The rates of limited readers.
    private let rates: ReaderRates
    private var context: ChannelHandlerContext?
    /// Whether a response head has passed and its end has not.
    private var isAnswering = false
    /// The accepted send request; nil between bodies.
    private var sendRequest: SendRequest?
    /// Set while the body of `sendRequest` is being sent.
    private var sender: BodySender?

    init(sendsFiles: Bool, sendBuffer: SendBufferTuning, rates: ReaderRates = ReaderRates()) {
        self.sendsFiles = sendsFiles
        self.sendBuffer = sendBuffer
        self.rates = rates
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    /// Accepts a send request. Fails it if the handler was removed or has a send request already.
    private func take(_ sendRequest: SendRequest) {
        guard context != nil, self.sendRequest == nil else {
            sendRequest.body.end(.clientGone)
            return sendRequest.sent.fail(ChannelError.ioOnClosedChannel)
        }
        self.sendRequest = sendRequest
        if isAnswering { begin() }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let part = unwrapOutboundIn(data)
        context.write(data, promise: promise)
        switch part {
        case .head:
            isAnswering = true
            begin()
        case .body: break
        case .end: isAnswering = false
        }
    }

    /// Starts the body once both the send request and the response head are present.
    private func begin() {
        guard let sendRequest, let context, sender == nil else { return }
        let pace = BodySender.Pace(sendRequest.body.reader, rates)
        let sender = BodySender(
            sendRequest.body, on: context, sendsFiles: sendsFiles, endsAnswer: false, pace: pace
        ) { [weak self] in
            self?.finished($0)
        }
        self.sender = sender
        sendBuffer.fit(to: sendRequest.body.read, on: context.channel)
        sender.start(sendRequest.first.map { .bytes($0) } ?? .end)
    }

    /// Completes the send request. Closes the connection unless the body was sent completely.
    private func finished(_ ending: ReadEnding) {
        let sent = sendRequest?.sent
        (sendRequest, sender) = (nil, nil)
        switch ending {
        case .sent: return sent?.succeed() ?? ()
        case .clientGone: sent?.fail(CancellationError())
        case .failed(let error): sent?.fail(error)
        }
        context?.close(promise: nil)
    }

    /// Cancels the send request for `body`. Has no effect if a later one has replaced it.
    private func giveUp(_ body: ContentBody) {
        if sendRequest?.body === body { giveUp() }
    }

    /// Cancels the current send request.
    private func giveUp() {
        guard let sendRequest else { return }
        sender?.stop(.clientGone)
        sendRequest.body.end(.clientGone)
        finished(.clientGone)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ConnectionTimeoutHandler.ClientDisconnected { giveUp() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        giveUp()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        giveUp()
        self.context = nil
    }
}

@available(*, unavailable)
extension BodyStreamHandler: Sendable {}
