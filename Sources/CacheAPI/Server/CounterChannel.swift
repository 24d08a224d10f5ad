import CacheCore
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOSSL

/// One accepted connection: TLS where it is wanted, HTTP/1.1, a watch over its client, and the express lane beside the
/// regular road where it may be used.
struct CounterChannel: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let stream: HTTP1Channel.Value
        let presence: ClientPresence

        var channel: any Channel { stream.channel }
    }

    let responder: HTTPChannelHandler.Responder
    let limits: APISettings.Limits
    let certificates: CertificateShelf?
    let wallClock: any WallClock
    let makeRequestID: @Sendable () -> String
    /// Nil where every request takes the regular road.
    let express: ExpressDesk?

    /// TCP_NOTSENT_LOWAT, which is 25 on Linux (tcp(7)).
    private static let unsentLimit = ChannelOptions.tcpOption(.init(rawValue: 25))
    /// How much the kernel takes beyond what is on its way: what a client that stops reading never gets is not read, and
    /// not fetched either.
    private static let unsentBytes = 128 << 10

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let presence = ClientPresence()
        return channel.eventLoop.makeCompletedFuture {
            // A kernel that does not know it holds more unsent: nothing that would be worth an error.
            try? channel.syncOptions?.setOption(Self.unsentLimit, value: Self.unsentBytes)
            guard let certificates else { return }
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificates.context))
        }.flatMap {
            http.setup(channel: channel, logger: logger)
        }.flatMapThrowing { stream in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(ByteWatch(), position: .before(decoder))
            // TLS makes of every byte another one: nothing is gained by sending from the event loop.
            let lane = certificates == nil ? express.map { ExpressLane(desk: $0) } : nil
            let watch = ConnectionWatch(presence: presence, limits: limits, makeRequestID: makeRequestID)
            let behind: [(any RemovableChannelHandler)?] = [WireRules(wallClock: wallClock), HostRules(), watch, lane]
            try pipeline.addHandlers(behind.compactMap { $0 }, position: .after(decoder))
            return Value(stream: stream, presence: presence)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await ClientPresence.$current.withValue(value.presence) {
            await http.handle(value: value.stream, logger: logger)
        }
    }

    /// Without a time-out of its own: it does not see what the express lane does.
    private var http: HTTP1Channel {
        HTTP1Channel(
            responder: responder,
            configuration: .init(
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: limits.headerBytes, maxHeaderListSize: limits.headerBytes,
                    maxHeaderFieldCount: limits.headerFields)))
    }
}
