import CacheCore
import Glibc
import Logging
import NIOCore
import ServiceLifecycle

/// The addresses on which the server accepts connections.
package struct BoundAddresses: Sendable {
    /// The port; nil for a Unix socket.
    package let port: Int?
    /// The URL of each address, or `unix:` and the path of the socket.
    package let urls: [String]

    init(_ channels: [any Channel], scheme: String) {
        port = channels.first?.localAddress?.port
        urls = channels.compactMap { $0.localAddress }.map { Self.url(of: $0, scheme: scheme) }
    }

    private static func url(of address: SocketAddress, scheme: String) -> String {
        guard let host = address.ipAddress, let port = address.port else { return "unix:\(address.pathname ?? "")" }
        return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}

/// Runs one server for each address of the listener.
struct ListenerService: Service {
    /// Makes a server; the closure is called when it listens.
    typealias MakeServer =
        @Sendable (SocketServer.Endpoint, _ onBound: @escaping @Sendable (any Channel) async -> Void) -> SocketServer

    let listener: APISettings.Listener
    let logger: Logger
    let makeServer: MakeServer
    /// Called when the server listens on all addresses.
    let onRunning: @Sendable ([any Channel]) async -> Void

    func run() async throws {
        switch listener {
        case .tcp("localhost", let port): try await runLocalhost(port: port)
        case .tcp(let host, let port):
            try await makeServer(.tcp(host: host, port: port)) { await onRunning([$0]) }.run()
        case .unix(let path, let mode): try await runUnix(path: path, mode: mode)
        case .inherited(let descriptors): try await runInherited(descriptors)
        }
    }

    /// Listens on the loopback addresses of both families, with the same port. Without IPv6 on this machine, only on that
    /// of IPv4.
    private func runLocalhost(port: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (channels, bound) = AsyncStream<any Channel>.makeStream()
            group.addTask {
                defer { bound.finish() }
                try await makeServer(.tcp(host: "127.0.0.1", port: port)) { bound.yield($0) }.run()
            }
            if let first = await channels.first(where: { _ in true }) {
                let second = makeServer(.tcp(host: "::1", port: first.localAddress?.port ?? port)) {
                    await onRunning([first, $0])
                }
                group.addTask {
                    do {
                        try await second.run()
                    } catch let error as IOError where [EADDRNOTAVAIL, EAFNOSUPPORT].contains(error.errnoCode) {
                        await onRunning([first])
                    }
                }
            }
            // Not `waitForAll`, which waits for the other server after the error of one.
            while try await group.next() != nil {}
        }
    }

    private func runUnix(path: String, mode: UInt32) async throws {
        let file = UnixSocketFile(path: path)
        try file.claim()
        defer { file.remove() }
        let server = makeServer(.unix(path: path)) { [logger] channel in
            do {
                try file.opened(mode: mode)
                await onRunning([channel])
            } catch {
                logger.error("the mode of the socket cannot be set", metadata: ["error": "\(error)"])
                channel.close(promise: nil)
            }
        }
        try await server.run()
    }

    /// Serves all sockets, until one of them fails.
    private func runInherited(_ descriptors: [Int32]) async throws {
        let bound = OrderedMutex<[any Channel]>(.leaf, [])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for descriptor in descriptors {
                let server = makeServer(.inherited(descriptor: descriptor)) { channel in
                    let channels = bound.withLock { bound in
                        bound.append(channel)
                        return bound
                    }
                    if channels.count == descriptors.count { await onRunning(channels) }
                }
                group.addTask { try await server.run() }
            }
            while try await group.next() != nil {}
        }
    }
}
