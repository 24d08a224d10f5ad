import Glibc

/// Registry of the sockets of one worker's connections, by port pair. Not thread-safe: used on the worker's thread
/// only.
///
/// libcurl closes the sockets itself without notice, and the kernel reuses descriptor numbers. So each lookup compares
/// the ports of the descriptor with the registered ones.
final class OpenedSockets {
    private struct Ports: Hashable {
        let local: Int32
        let remote: Int32
    }

    private struct Entry {
        let socket: Int32
        /// The time when the socket was created.
        let opened: Instant
    }

    /// New sockets and the times of their creation; their ports are unknown until they are connected.
    private var recent: [Int32: Instant] = [:]
    /// Connected sockets by port pair.
    private var placed: [Ports: Entry] = [:]

    /// Registers a socket that was created for a connection.
    func opened(_ socket: Int32, at now: Instant) { recent[socket] = now }

    /// The time when the connection between these ports was opened; nil if it is unknown.
    func opened(localPort: Int32, remotePort: Int32) -> Instant? {
        place()
        return placed[Ports(local: localPort, remote: remotePort)]?.opened
    }

    /// The socket of the connection between these ports; nil if it is unknown.
    func socket(localPort: Int32, remotePort: Int32) -> Int32? {
        place()
        let wanted = Ports(local: localPort, remote: remotePort)
        return placed[wanted].flatMap { Self.ports(of: $0.socket) == wanted ? $0.socket : nil }
    }

    /// Whether unread bytes are in the receive buffer of the connection between these ports. Does not block.
    func haveInput(localPort: Int32, remotePort: Int32) -> Bool {
        guard let socket = socket(localPort: localPort, remotePort: remotePort) else { return false }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Whether the socket is connected.
    static func isConnected(_ socket: Int32) -> Bool { ports(of: socket) != nil }

    /// Moves connected sockets to `placed`, and removes closed ones if there are many.
    private func place() {
        for (socket, opened) in recent {
            if let ports = Self.ports(of: socket) { placed[ports] = Entry(socket: socket, opened: opened) }
        }
        recent = [:]
        if placed.count > 512 { placed = placed.filter { Self.ports(of: $0.value.socket) == $0.key } }
    }

    /// The ports of a socket; nil if it is not connected or closed.
    private static func ports(of socket: Int32) -> Ports? {
        guard let local = port(socket, getsockname), let remote = port(socket, getpeername) else { return nil }
        return Ports(local: local, remote: remote)
    }

    private static func port(
        _ socket: Int32, _ read: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Int32? {
        // Large enough for both families; the port is at the same offset in both.
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { read(socket, $0, &length) }
        }
        guard code == 0, [AF_INET, AF_INET6].contains(Int32(address.sin6_family)) else { return nil }
        return Int32(UInt16(bigEndian: address.sin6_port))
    }
}
