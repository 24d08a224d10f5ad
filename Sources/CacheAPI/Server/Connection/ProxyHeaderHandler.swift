import CacheCore
import Logging
import NIOCore

/// Channel handler that removes the PROXY header from the start of a connection, before TLS.
///
/// It closes a connection that does not come from a trusted proxy, or has no complete header in time. Then nothing is
/// sent, because the other end may be a proxy or a client.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// Event for the handlers behind: the address of the client is known.
    struct Completed: Sendable {}

    private let client: ConnectionClient
    private let logger: Logger
    /// The bytes of an incomplete header.
    private var received = ByteBuffer()
    /// Closes the connection at the end of the time.
    private var alarm: Scheduled<Void>?
    /// Whether the header is complete: all bytes are forwarded.
    private var isComplete = false
    private var isOver = false

    init(_ client: ConnectionClient, logger: Logger) {
        self.client = client
        self.logger = logger
    }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        guard client.isTrusted else {
            return refuse("The connection does not come from an address of listen.trustedProxies.", context)
        }
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        alarm = context.eventLoop.scheduleTask(in: TimeAmount(client.headerTimeout)) {
            here.value.0.refuse("No complete PROXY header arrived in time.", here.value.1)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { alarm?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        alarm?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        guard !isComplete else { return context.fireChannelRead(data) }
        var part = unwrapInboundIn(data)
        received.writeBuffer(&part)
        switch ProxyHeader.parse(Array(received.readableBytesView.prefix(ProxyHeader.maxBytes))) {
        case .incomplete: break
        case .malformed(let reason): refuse(reason, context)
        case .complete(let length, let source):
            alarm?.cancel()
            isComplete = true
            client.proxied(source)
            received.moveReaderIndex(forwardBy: length)
            let rest = received
            received = ByteBuffer()
            context.fireUserInboundEventTriggered(Completed())
            if rest.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(rest)) }
        }
    }

    private func refuse(_ reason: String, _ context: ChannelHandlerContext) {
        guard !isOver else { return }
        isOver = true
        alarm?.cancel()
        logger.info(
            "a connection without a valid PROXY header was closed",
            metadata: ["client": "\(client.client?.text ?? "unknown")", "reason": "\(reason)"])
        context.close(promise: nil)
    }
}

@available(*, unavailable)
extension ProxyHeaderHandler: Sendable {}
