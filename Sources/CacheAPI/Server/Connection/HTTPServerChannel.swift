import CacheCore
import CacheEngine
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import ReaderAccess

/// Builds the channel pipeline of each accepted connection: TLS if configured, HTTP/1.1, time-outs and content.
///
/// The order of the handlers is described in `docs/internals/content-responses.md`.
struct HTTPServerChannel: Sendable {
    let api: APIResponder
    let live: LiveAPISettings
    /// Nil without TLS.
    let certificates: CertificateReloader?
    let wallClock: any WallClock
    let random: any RandomSource
    let content: ContentResponder
    /// The prepared responses of each event loop.
    let responseCaches: PreparedResponseCaches
    let connections: ConnectionPermits
    let addresses: AddressLimiter
    let clientAddresses: ClientAddressRules
    let sendBufferBudget: SendBufferBudget
    let pacing: CongestionControl
    /// The rates of limited readers.
    let rates: ReaderRates
    /// The log of the service.
    let logger: Logger

    /// Claims a permit for the connection and adds all handlers. Called on the channel's event loop.
    ///
    /// A connection without a permit gets the same handlers; ``HTTPConnectionHandler`` then sends 503.
    func setup(_ channel: any Channel) -> EventLoopFuture<Void> {
        let disconnection = AsyncEvent()
        let client = ConnectionClient(channel, clientAddresses)
        // `displaced` runs on another connection's thread, possibly before the handler exists.
        let handler =
            NIOLoopBoundBox.makeEmptyBox(valueType: HTTPConnectionHandler.self, eventLoop: channel.eventLoop)
        let permit = connections.take { channel.eventLoop.execute { handler.value?.displace() } }
        channel.closeFuture.whenComplete { _ in
            permit?.giveBack()
            handler.value = nil
        }
        pacing.fit(channel)
        // Limits the response bytes in memory for a client that sends requests and reads nothing.
        let mark = ChannelOptions.Types.WriteBufferWaterMark(low: 64 << 10, high: 256 << 10)
        return channel.eventLoop.makeCompletedFuture {
            try channel.syncOptions?.setOption(.writeBufferWaterMark, value: mark)
            let pipeline = channel.pipeline.syncOperations
            if clientAddresses.requiresProxyHeader {
                try pipeline.addHandler(ProxyHeaderHandler(client, logger: logger))
            }
            var certificate: ClientCertificate?
            if let certificates {
                try pipeline.addHandler(NIOSSLServerHandler(context: certificates.context))
                if certificates.asksClients {
                    let asked = ClientCertificate()
                    try pipeline.addHandler(ClientCertificateHandler(asked))
                    certificate = asked
                }
            }
            let limits = live.values.limits
            let connection = HTTPConnectionHandler(
                disconnection: disconnection, wallClock: wallClock, limits: limits, connections: connections,
                permit: permit,
                client: client, addresses: addresses, awaitsAddress: clientAddresses.requiresProxyHeader,
                makeRequestID: { [random] in random.identifier() })
            handler.value = connection
            try addHandlers(to: channel, limits, connection: connection, permit: permit, certificate, client)
            let parts = APIConnection(
                channel: channel, disconnection: disconnection, certificate: certificate, client: client)
            try pipeline.addHandler(APIHandler(api, parts))
        }
    }

    /// Adds the handlers between the socket (or TLS) and ``APIHandler``.
    private func addHandlers(
        to channel: any Channel, _ limits: APISettings.Limits, connection: HTTPConnectionHandler,
        permit: ConnectionPermits.Permit?, _ certificate: ClientCertificate?, _ client: ConnectionClient
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        let sendBuffer = SendBufferTuning(in: sendBufferBudget)
        var prepared: PreparedResponseSender?
        // With a client certificate equal requests do not mean the same reader, and fields of proxies are to be checked.
        if content.isFastPathEnabled, certificate == nil, permit != nil, clientAddresses.source == .connection {
            prepared = PreparedResponseSender(
                responseCache: responseCaches.responseCache(of: channel.eventLoop), responder: content,
                sendBuffer: sendBuffer, connection: connection, client: client)
        }
        try RequestDecoder.add(to: pipeline, limits, prepared: prepared)
        let handlers: [any RemovableChannelHandler] = [
            connection,
            ContentHandler(
                responder: content, sendBuffer: sendBuffer, rates: rates, prepared: prepared,
                certificate: certificate, client: client),
        ]
        try pipeline.addHandlers(handlers + ResponseCompression.makeHandlers())
    }
}
