import NIOCore
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
            let (over, end) = AsyncStream<Never>.makeStream()
            let connections = AcceptedConnections(limit: acceptLimit) { end.finish() }
            let listener = try await bind(bootstrap(group, connections))
            await withGracefulShutdownHandler {
                await onBound(listener)
                for await _ in over {}
                if Task.isCancelled { connections.cut() }
            } onGracefulShutdown: {
                connections.stop()
            }
        }
    }

    private func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ connections: AcceptedConnections
    ) -> ServerBootstrap {
        ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: Self.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptedConnections.Handler(connections))
                }
            }
            // Called for each accepted connection: an option of the bootstrap could fail before it.
            .childChannelInitializer { channel in
                let ready = channel.setOption(.allowRemoteHalfClosure, value: true).flatMap {
                    connection.setup(channel)
                }
                ready.whenComplete { _ in connections.settled(channel) }
                return ready
            }
    }

    private func bind(_ bootstrap: ServerBootstrap) async throws -> any Channel {
        switch endpoint {
        case .tcp(let host, let port): try await bootstrap.bind(host: host, port: port).get()
        case .unix(let path): try await bootstrap.bind(unixDomainSocketPath: path).get()
        case .inherited(let descriptor): try await bootstrap.withBoundSocket(descriptor).get()
        }
    }
}
