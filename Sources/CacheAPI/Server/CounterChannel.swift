import CacheCore
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOSSL

/// One accepted connection: TLS where it is wanted, HTTP/1.1, and a watch over its client.
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

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let presence = ClientPresence()
        let http = http(presence)
        return channel.eventLoop.makeCompletedFuture {
            guard let certificates else { return }
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificates.context))
        }.flatMap {
            http.setup(channel: channel, logger: logger)
        }.flatMapThrowing { [wallClock] stream in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(ByteWatch(), position: .before(decoder))
            try pipeline.addHandler(HostRules(), position: .after(decoder))
            try pipeline.addHandler(WireRules(wallClock: wallClock), position: .after(decoder))
            return Value(stream: stream, presence: presence)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await ClientPresence.$current.withValue(value.presence) {
            await http(value.presence).handle(value: value.stream, logger: logger)
        }
    }

    private func http(_ presence: ClientPresence) -> HTTP1Channel {
        HTTP1Channel(
            responder: responder,
            configuration: .init(
                additionalChannelHandlers: [
                    ConnectionWatch(
                        presence: presence, headerTimeout: limits.headerTimeout,
                        halfClosedTimeout: limits.halfClosedTimeout, makeRequestID: makeRequestID)
                ],
                idleTimeout: TimeAmount(limits.idleTimeout),
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: limits.headerBytes, maxHeaderListSize: limits.headerBytes,
                    maxHeaderFieldCount: limits.headerFields)))
    }
}
