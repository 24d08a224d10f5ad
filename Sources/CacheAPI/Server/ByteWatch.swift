import NIOCore

/// Stands in front of the HTTP decoder, which says nothing of a head until it is whole: tells that something came.
final class ByteWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The client has sent something.
    struct Arrival: Sendable {}

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.fireUserInboundEventTriggered(Arrival())
        context.fireChannelRead(data)
    }
}

@available(*, unavailable)
extension ByteWatch: Sendable {}
