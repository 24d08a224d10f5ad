import HummingbirdCore
import Logging
import NIOCore
import NIOExtras
import NIOPosix
import ServiceLifecycle

/// Accepts the connections of one listening socket. A graceful shutdown closes the socket; the server ends with its last
/// connection.
struct SocketServer: Service {
    /// The origin of the listening socket.
    enum Endpoint: Sendable {
        /// A new socket of a host name or an address.
        case tcp(host: String, port: Int)
        /// A new socket at a path without a file.
        case unix(path: String)
        /// A listening socket of the process that started this one. The server closes the descriptor.
        case inherited(descriptor: Int32)
    }

    let endpoint: Endpoint
    let connection: HTTPServerChannel
    /// At this number of connections the server stops accepting; further ones wait in the backlog.
    let acceptLimit: Int
    let logger: Logger
    /// Called when the server listens.
    let onBound: @Sendable (any Channel) async -> Void

    /// The maximum number of connections that wait to be accepted; the kernel may have a lower limit.
    private static let backlog: Int32 = 4096

    /// Throws if the socket cannot be opened.
    ///
    /// Connections are accepted on an event loop, because requests and jobs can keep the shared executor busy: new
    /// connections, also those of health checks, would wait.
    func run() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        try await withTaskExecutorPreference(EventLoopExecutor(group.any())) {
            let quiescing = ServerQuiescingHelper(group: group)
            let server = try await bind(bootstrap(group, quiescing))
            await withGracefulShutdownHandler {
                await onBound(server.channel)
                await serve(server)
            } onGracefulShutdown: {
                quiescing.initiateShutdown(promise: nil)
            }
        }
    }

    private func serve(_ server: NIOAsyncChannel<HTTPServerChannel.Value, Never>) async {
        await withDiscardingTaskGroup { connections in
            do {
                try await server.executeThenClose { accepted in
                    for try await value in accepted {
                        connections.addTask { await connection.handle(value: value, logger: logger) }
                    }
                }
            } catch {
                logger.error("connections cannot be accepted any more", metadata: ["error": "\(error)"])
            }
        }
    }

    private func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ quiescing: ServerQuiescingHelper
    ) -> ServerBootstrap {
        ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: Self.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let limit = MaximumAvailableConnections(acceptLimit, logger: logger)
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(AvailableConnectionsChannelHandler(delegate: limit))
                    try pipeline.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
    }

    private func bind(
        _ bootstrap: ServerBootstrap
    ) async throws -> NIOAsyncChannel<HTTPServerChannel.Value, Never> {
        let setUp = { @Sendable (channel: any Channel) in connection.setup(channel: channel, logger: logger) }
        return switch endpoint {
        case .tcp(let host, let port):
            try await bootstrap.bind(host: host, port: port, childChannelInitializer: setUp)
        case .unix(let path):
            try await bootstrap.bind(unixDomainSocketPath: path, childChannelInitializer: setUp)
        case .inherited(let descriptor):
            try await bootstrap.bind(descriptor, childChannelInitializer: setUp)
        }
    }
}
