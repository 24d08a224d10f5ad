package import CacheCore
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

/// A real HTTP/2 server on 127.0.0.1, over TLS with a certificate of its own, that answers each stream as it is told to.
///
///     let upstream = try await MultiplexedUpstream()
///     upstream.serve("/a") { stream in
///         stream.answer(asset)
///         stream.send(asset, 0..<1000)
///     }
package final class MultiplexedUpstream: Sendable {
    package typealias Answering = @Sendable (MultiplexedStream) -> Void

    /// Chosen by the system.
    package let port: Int
    private let listener: any Channel
    private let desk: MultiplexedDesk

    package init() async throws {
        let desk = MultiplexedDesk()
        let tls = try NIOSSLContext(configuration: Self.tls())
        listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                let connection = desk.opened()
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                }.flatMap {
                    channel.configureHTTP2Pipeline(mode: .server) { stream in
                        stream.eventLoop.makeCompletedFuture {
                            try stream.pipeline.syncOperations.addHandler(StreamHandler(desk, connection))
                        }
                    }.map { _ in }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
        self.desk = desk
    }

    deinit { listener.close(promise: nil) }

    /// Answers every request for `path` as `answering` says; it runs on the connection's event loop.
    package func serve(_ path: String, answering: @escaping Answering) {
        desk.state.withLock { $0.routes[path] = answering }
    }

    package func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    /// Every request so far, in the order they came.
    package var streams: [MultiplexedStream] { desk.state.withLock { $0.streams } }

    /// How many connections were made.
    package var connections: Int { desk.state.withLock { $0.connections } }

    private static func tls() throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try NIOSSLCertificate(bytes: Array(certificate.utf8), format: .pem))],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem)))
        tls.applicationProtocols = ["h2"]
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

/// What an upstream's connections share.
private final class MultiplexedDesk: Sendable {
    struct State {
        var routes: [String: MultiplexedUpstream.Answering] = [:]
        var streams: [MultiplexedStream] = []
        var connections = 0
    }

    let state = Mutex(State())

    /// The number of a new connection.
    func opened() -> Int {
        state.withLock { state in
            state.connections += 1
            return state.connections
        }
    }
}

/// One request to a `MultiplexedUpstream`, and the way to answer it from any thread.
package final class MultiplexedStream: Sendable {
    package let path: String
    /// The `Range`, if there was one.
    package let range: ByteRange?
    /// The number of its connection, from 1 on.
    package let connection: Int
    private let channel: any Channel
    private let reset = Mutex(false)

    fileprivate init(_ path: String, _ range: ByteRange?, _ connection: Int, _ channel: any Channel) {
        self.path = path
        self.range = range
        self.connection = connection
        self.channel = channel
    }

    /// Whether the other side has cut it.
    package var isReset: Bool { reset.withLock { $0 } }

    /// The answer's head: 206 where a range of `asset` was asked for, and else `status`.
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

    /// These bytes of `asset`; `isLast`: the answer ends with them.
    package func send(_ asset: LoopbackAsset, _ range: ByteRange, isLast: Bool = false) {
        let bytes = ByteBuffer(bytes: asset.bytes(range))
        channel.writeAndFlush(
            HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(bytes), endStream: isLast)), promise: nil)
    }

    /// The head and all that was asked for.
    package func serve(_ asset: LoopbackAsset) {
        answer(asset)
        send(asset, range ?? 0..<asset.size, isLast: true)
    }

    /// Ends it with an error of its own.
    package func abort() {
        channel.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.internalError), promise: nil)
    }

    fileprivate func wasReset() { reset.withLock { $0 = true } }
}

private final class StreamHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame.FramePayload

    private let desk: MultiplexedDesk
    private let connection: Int
    private var stream: MultiplexedStream?

    init(_ desk: MultiplexedDesk, _ connection: Int) {
        self.desk = desk
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .headers(let head) = unwrapInboundIn(data) else { return }
        let path = head.headers.first(name: ":path") ?? ""
        let stream = MultiplexedStream(path, Self.range(head.headers), connection, context.channel)
        self.stream = stream
        let answering = desk.state.withLock { state in
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
