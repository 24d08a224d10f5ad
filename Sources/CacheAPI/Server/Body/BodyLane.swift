import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1

/// Sends the bodies of content for the regular road, which has written the answer's head and will write its end: the
/// bytes need not pass through it.
final class BodyLane: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The lane, for those who are not on its event loop.
    struct Door: Sendable {
        /// That of the connection which the running request came on.
        @TaskLocal static var current: Door?

        private let lane: NIOLoopBound<BodyLane>
        private let eventLoop: any EventLoop

        init(_ lane: BodyLane, on eventLoop: any EventLoop) {
            self.lane = NIOLoopBound(lane, eventLoop: eventLoop)
            self.eventLoop = eventLoop
        }

        /// Sends `first` and all that follows, and finishes the read. Where it throws the connection is cut, so that
        /// nobody takes a part for the whole.
        func send(_ body: ContentBody, first: ByteBuffer?) async throws {
            let sent = eventLoop.makePromise(of: Void.self)
            let lane = lane
            eventLoop.execute { lane.value.take(Order(body: body, first: first, sent: sent)) }
            try await withTaskCancellationHandler {
                try await sent.futureResult.get()
            } onCancel: {
                eventLoop.execute { lane.value.giveUp(body) }
            }
        }
    }

    private struct Order {
        let body: ContentBody
        let first: ByteBuffer?
        let sent: EventLoopPromise<Void>
    }

    private let sendsFiles: Bool
    private let sendBuffer: SendBuffer
    private var context: ChannelHandlerContext?
    /// Whether an answer's head has passed, and not yet its end.
    private var isAnswering = false
    private var order: Order?
    private var sender: BodySender?

    init(sendsFiles: Bool, sendBuffer: SendBuffer) {
        self.sendsFiles = sendsFiles
        self.sendBuffer = sendBuffer
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    private func take(_ order: Order) {
        guard context != nil, self.order == nil else {
            order.body.end(.clientGone)
            return order.sent.fail(ChannelError.ioOnClosedChannel)
        }
        self.order = order
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

    private func begin() {
        guard let order, let context, sender == nil else { return }
        let sender = BodySender(order.body, on: context, sendsFiles: sendsFiles, endsAnswer: false) { [weak self] in
            self?.finished($0)
        }
        self.sender = sender
        sendBuffer.fit(to: order.body.read, on: context.channel)
        sender.start(order.first.map { .bytes($0) } ?? .end)
    }

    private func finished(_ ending: ReadEnding) {
        let sent = order?.sent
        (order, sender) = (nil, nil)
        switch ending {
        case .sent: return sent?.succeed() ?? ()
        case .clientGone: sent?.fail(CancellationError())
        case .failed(let error): sent?.fail(error)
        }
        context?.close(promise: nil)
    }

    private func giveUp(_ body: ContentBody) {
        if order?.body === body { giveUp() }
    }

    private func giveUp() {
        guard let order else { return }
        sender?.stop(.clientGone)
        order.body.end(.clientGone)
        finished(.clientGone)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ConnectionWatch.Leave { giveUp() }
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
extension BodyLane: Sendable {}
