import CacheCore
import CacheEngine
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
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
    let connections: ConnectionPermits
    let sendRoom: SendRoom
    let pacing: KernelPacing

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let presence = ClientPresence()
        let watches = NIOLoopBoundBox.makeEmptyBox(valueType: ConnectionWatch.self, eventLoop: channel.eventLoop)
        let permit = connections.take { channel.eventLoop.execute { watches.value?.displace() } }
        channel.closeFuture.whenComplete { _ in
            permit?.giveBack()
            watches.value = nil
        }
        pacing.fit(channel)
        // So many bytes of answers wait in memory for a client that asks on and on and reads nothing.
        let mark = ChannelOptions.Types.WriteBufferWaterMark(low: 64 << 10, high: 256 << 10)
        return channel.eventLoop.makeCompletedFuture {
            try channel.syncOptions?.setOption(.writeBufferWaterMark, value: mark)
            let pipeline = channel.pipeline.syncOperations
            if let certificates {
                try pipeline.addHandler(NIOSSLServerHandler(context: certificates.context))
            }
            let watch = ConnectionWatch(
                presence: presence, limits: limits, connections: connections, permit: permit,
                makeRequestID: { [chance] in chance.identifier() })
            watches.value = watch
            let bodyDoor = try addHandlers(to: channel, watch: watch, permit: permit)
            try pipeline.addHandlers(
                HTTP1ToHTTPServerCodec(secure: false), HTTPConnectionStateHandler(logger: logger))
            let stream = try HTTP1Channel.Value(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
            return Value(stream: stream, presence: presence, bodyDoor: bodyDoor)
        }
    }

    /// Adds the handlers between the socket, or TLS, and the router's side.
    private func addHandlers(
        to channel: any Channel, watch: ConnectionWatch, permit: ConnectionPermits.Permit?
    ) throws -> BodyLane.Door {
        let pipeline = channel.pipeline.syncOperations
        let sendBuffer = SendBuffer(in: sendRoom)
        var lane: ExpressLane?
        let isRegular = permit.map { !$0.isReserved } ?? false
        // TLS makes of every byte another one: nothing is gained by sending from the event loop.
        if let express, certificates == nil, isRegular {
            let reprises = RepriseLane(
                book: books.book(of: channel.eventLoop), desk: express, sendBuffer: sendBuffer, watch: watch)
            try pipeline.addHandler(reprises)
            lane = ExpressLane(desk: express, sendBuffer: sendBuffer, reprises: reprises)
        }
        try RequestDecoder.add(to: pipeline, limits)
        let bodies = BodyLane(sendsFiles: certificates == nil, sendBuffer: sendBuffer)
        let behind: [(any RemovableChannelHandler)?] = [
            WireRules(wallClock: wallClock, limits: limits, isForOneRequest: !isRegular), RequestHeadValidator(), watch,
            lane, bodies,
        ]
        try pipeline.addHandlers(behind.compactMap { $0 })
        return BodyLane.Door(bodies, on: channel.eventLoop)
    }

    func handle(value: Value, logger: Logger) async {
        await ClientPresence.$current.withValue(value.presence) {
            await BodyLane.Door.$current.withValue(value.bodyDoor) {
                await http.handle(value: value.stream, logger: logger)
            }
        }
    }

    /// The loop over requests; the pipeline is made above.
    private var http: HTTP1Channel { HTTP1Channel(responder: responder) }
}
