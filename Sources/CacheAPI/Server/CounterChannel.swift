import CacheCore
import CacheEngine
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
        let bodyDoor: BodyLane.Door

        var channel: any Channel { stream.channel }
    }

    let responder: HTTPChannelHandler.Responder
    let limits: APISettings.Limits
    let certificates: CertificateShelf?
    let wallClock: any WallClock
    let chance: any Chance
    /// Nil where every request takes the regular road.
    let express: ExpressDesk?
    let books: RepriseBooks
    let connections: Places
    let sendRoom: SendRoom
    let pacing: KernelPacing

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let presence = ClientPresence()
        let place = connections.take()
        channel.closeFuture.whenComplete { _ in withExtendedLifetime(place) {} }
        pacing.fit(channel)
        // So many bytes of answers wait in memory for a client that asks on and on and reads nothing.
        let mark = ChannelOptions.Types.WriteBufferWaterMark(low: 64 << 10, high: 256 << 10)
        return channel.eventLoop.makeCompletedFuture {
            try channel.syncOptions?.setOption(.writeBufferWaterMark, value: mark)
            guard let certificates else { return }
            try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: certificates.context))
        }.flatMap {
            http.setup(channel: channel, logger: logger)
        }.flatMapThrowing { stream in
            let pipeline = channel.pipeline.syncOperations
            let sendBuffer = SendBuffer(in: sendRoom)
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(ByteWatch(), position: .before(decoder))
            let watch = ConnectionWatch(
                presence: presence, limits: limits, isTurnedAway: place == nil,
                makeRequestID: { [chance] in chance.identifier() })
            var lane: ExpressLane?
            // TLS makes of every byte another one: nothing is gained by sending from the event loop.
            if let express, certificates == nil, place != nil {
                let reprises = RepriseLane(
                    book: books.book(of: channel.eventLoop), desk: express, sendBuffer: sendBuffer, watch: watch)
                try pipeline.addHandler(reprises, position: .first)
                lane = ExpressLane(desk: express, sendBuffer: sendBuffer, reprises: reprises)
            }
            let bodies = BodyLane(sendsFiles: certificates == nil, sendBuffer: sendBuffer)
            let behind: [(any RemovableChannelHandler)?] = [
                WireRules(wallClock: wallClock), HostRules(), watch, lane, bodies,
            ]
            try pipeline.addHandlers(behind.compactMap { $0 }, position: .after(decoder))
            let door = BodyLane.Door(bodies, on: channel.eventLoop)
            return Value(stream: stream, presence: presence, bodyDoor: door)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await ClientPresence.$current.withValue(value.presence) {
            await BodyLane.Door.$current.withValue(value.bodyDoor) {
                await http.handle(value: value.stream, logger: logger)
            }
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
