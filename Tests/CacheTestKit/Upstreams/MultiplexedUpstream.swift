package import CacheCore
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

/// HTTP/2 server on 127.0.0.1, over TLS with a self-signed certificate. The test answers each stream.
///
///     let upstream = try await MultiplexedUpstream()
///     upstream.serve("/a") { stream in
///         stream.answer(asset)
///         stream.send(asset, 0..<1000)
///     }
package final class MultiplexedUpstream: Sendable {
    package typealias Answering = @Sendable (MultiplexedStream) -> Void

    /// The ephemeral port assigned by the system.
    package let port: Int
    private let listener: any Channel
    private let scheduler: MultiplexedDesk

    /// - Parameter acceptsHTTP1: Whether clients may also use HTTP/1.1.
    package init(acceptsHTTP1: Bool = false) async throws {
        let scheduler = MultiplexedDesk()
        let tls = try NIOSSLContext(configuration: Self.tls(acceptsHTTP1 ? ["h2", "http/1.1"] : ["h2"]))
        listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                let connection = scheduler.opened()
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                }.flatMap {
                    channel.configureHTTP2SecureUpgrade { channel in
                        channel.configureHTTP2Pipeline(mode: .server) { stream in
                            stream.eventLoop.makeCompletedFuture {
                                try stream.pipeline.syncOperations.addHandler(StreamHandler(scheduler, connection))
                            }
                        }.map { _ in }
                    } http1ChannelConfigurator: { channel in
                        channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                            try channel.pipeline.syncOperations.addHandlers(
                                HTTP1Frames(), StreamHandler(scheduler, connection, isHTTP1: true))
                        }
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
        self.scheduler = scheduler
    }

    deinit { listener.close(promise: nil) }

    /// Passes every request for `path` to `answering`, called on the connection's event loop.
    package func serve(_ path: String, answering: @escaping Answering) {
        scheduler.state.withLock { $0.routes[path] = answering }
    }

    package func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    /// All requests so far, in order of arrival.
    package var streams: [MultiplexedStream] { scheduler.state.withLock { $0.streams } }

    /// The number of accepted connections.
    package var connections: Int { scheduler.state.withLock { $0.connections } }

    private static func tls(_ protocols: [String]) throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try NIOSSLCertificate(bytes: Array(certificate.utf8), format: .pem))],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem)))
        tls.applicationProtocols = protocols
        return tls
    }

    package static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/d2GtDFGPc33OQYY
        ryMeaJSNrrutlJd6PpqkhJT5Ev6hRANCAAR3h4Q/Irt2rQiHYJQeL+yfpIXyyJV6
        5CKjTQxUtroiCNJ23elfkJk2b37g0bMe72s+/D0snH3lP5WPNkVCmlX0
        -----END PRIVATE KEY-----
        """

    package static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBgDCCASWgAwIBAgIUDy+6vfEeYT/bPmXVQ6GiIvPOMNwwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE5MDgzMloYDzIxMjYxMDI4
        MTkwODMyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAR3h4Q/Irt2rQiHYJQeL+yfpIXyyJV65CKjTQxUtroiCNJ23elfkJk2
        b37g0bMe72s+/D0snH3lP5WPNkVCmlX0o1MwUTAdBgNVHQ4EFgQU+4FllzwvAhpn
        +uVUJP224vT/YfswHwYDVR0jBBgwFoAU+4FllzwvAhpn+uVUJP224vT/YfswDwYD
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAoSHjawHsdcDBwXH1bGK1
        LaPqWqDsfqe6Zif+OFs4CVcCIQDyqpu97uePO3dlC0oYlvL/OKFdubcg1A4Q22O6
        JnZ/mw==
        -----END CERTIFICATE-----
        """
}

/// State shared by the connections of an upstream: routes and recorded requests.
private final class MultiplexedDesk: Sendable {
    struct State {
        var routes: [String: MultiplexedUpstream.Answering] = [:]
        var streams: [MultiplexedStream] = []
        var connections = 0
    }

    let state = Mutex(State())

    /// Registers a connection and returns its number.
    func opened() -> Int {
        state.withLock { state in
            state.connections += 1
            return state.connections
        }
    }
}

/// One request to a `MultiplexedUpstream`. It can be answered from any thread.
package final class MultiplexedStream: Sendable {
    package let path: String
    /// The range of the `Range` field, if present.
    package let range: ByteRange?
    /// The number of the connection, from 1.
    package let connection: Int
    /// Whether the request came over HTTP/1.1.
    package let isHTTP1: Bool
    private let channel: any Channel
    private let reset = Mutex(false)

    fileprivate init(
        _ path: String, _ range: ByteRange?, _ connection: Int, isHTTP1: Bool, _ channel: any Channel
    ) {
        self.isHTTP1 = isHTTP1
        self.path = path
        self.range = range
        self.connection = connection
        self.channel = channel
    }

    /// Whether the client has reset the stream.
    package var isReset: Bool { reset.withLock { $0 } }

    /// Sends the response head: 206 if the request has a range, `status` otherwise.
    package func answer(_ asset: LoopbackAsset, status: Int = 200) {
        var fields = HPACKHeaders()
        let sent = range ?? 0..<asset.size
        fields.add(name: ":status", value: "\(range == nil ? status : 206)")
        fields.add(name: "content-length", value: "\(sent.length)")
        if let tag = asset.etag { fields.add(name: "etag", value: tag) }
        if range != nil {
            let span = "\(sent.lowerBound)-\(sent.upperBound - 1)"
            fields.add(name: "content-range", value: "bytes \(span)/\(asset.size)")
        }
        channel.writeAndFlush(HTTP2Frame.FramePayload.headers(.init(headers: fields)), promise: nil)
    }

    /// Sends a range of `asset`. `isLast` ends the stream.
    package func send(_ asset: LoopbackAsset, _ range: ByteRange, isLast: Bool = false) {
        let bytes = ByteBuffer(bytes: asset.bytes(range))
        channel.writeAndFlush(
            HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(bytes), endStream: isLast)), promise: nil)
    }

    /// Sends the head and all requested bytes.
    package func serve(_ asset: LoopbackAsset) {
        answer(asset)
        send(asset, range ?? 0..<asset.size, isLast: true)
    }

    /// Resets the stream with an internal error.
    package func abort() {
        channel.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.internalError), promise: nil)
    }

    /// Resets the stream with HTTP_1_1_REQUIRED.
    package func requireHTTP1() {
        channel.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.http11Required), promise: nil)
    }

    fileprivate func wasReset() { reset.withLock { $0 = true } }
}

/// Creates a `MultiplexedStream` for each request head and passes it to the function for its path.
private final class StreamHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload

    private let scheduler: MultiplexedDesk
    private let connection: Int
    private let isHTTP1: Bool
    private var stream: MultiplexedStream?

    init(_ scheduler: MultiplexedDesk, _ connection: Int, isHTTP1: Bool = false) {
        self.scheduler = scheduler
        self.connection = connection
        self.isHTTP1 = isHTTP1
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .headers(let head) = unwrapInboundIn(data) else { return }
        let path = head.headers.first(name: ":path") ?? ""
        let stream = MultiplexedStream(
            path, Self.range(head.headers), connection, isHTTP1: isHTTP1, context.channel)
        self.stream = stream
        let answering = scheduler.state.withLock { state in
            state.streams.append(stream)
            return state.routes[path]
        }
        answering?(stream)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is NIOHTTP2Errors.StreamClosed { stream?.wasReset() }
        context.close(promise: nil)
    }

    private static func range(_ fields: HPACKHeaders) -> ByteRange? {
        let ends = fields.first(name: "range")?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int64($0) }
        guard let ends, ends.count == 2 else { return nil }
        return ends[0]..<(ends[1] + 1)
    }
}

/// Presents the requests and responses of an HTTP/1.1 connection as frames of HTTP/2.
private final class HTTP1Frames: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTPServerResponsePart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return }
        var fields = HPACKHeaders([(":path", head.uri)])
        for (name, value) in head.headers { fields.add(name: name.lowercased(), value: value) }
        context.fireChannelRead(wrapInboundOut(.headers(.init(headers: fields))))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .headers(let frame):
            let status = frame.headers.first(name: ":status").flatMap { Int($0) } ?? 500
            let fields = frame.headers.filter { !$0.name.hasPrefix(":") }.map { ($0.name, $0.value) }
            let head = HTTPResponseHead(
                version: .http1_1, status: .init(statusCode: status), headers: HTTPHeaders(fields))
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .data(let frame):
            context.write(wrapOutboundOut(.body(frame.data)), promise: frame.endStream ? nil : promise)
            if frame.endStream { context.write(wrapOutboundOut(.end(nil)), promise: promise) }
        default: context.close(promise: promise)
        }
    }
}
