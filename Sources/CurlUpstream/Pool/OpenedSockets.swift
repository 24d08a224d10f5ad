import Glibc

/// The sockets that were made for one worker's connections, found again by their ports. Used on that worker's thread only.
///
/// libcurl closes them by itself. A number that was given to another socket since is told by its ports.
final class OpenedSockets {
    private struct Ports: Hashable {
        let local: Int32
        let remote: Int32
    }

    /// Those of which the ports are not known yet.
    private var recent: Set<Int32> = []
    private var placed: [Ports: Int32] = [:]

    func opened(_ socket: Int32) { recent.insert(socket) }

    /// The socket of the connection between these ports; nil where it was not made here.
    func socket(localPort: Int32, remotePort: Int32) -> Int32? {
        place()
        let wanted = Ports(local: localPort, remote: remotePort)
        return placed[wanted].flatMap { Self.ports(of: $0) == wanted ? $0 : nil }
    }

    /// Whether bytes wait to be read on the connection between these ports.
    func haveInput(localPort: Int32, remotePort: Int32) -> Bool {
        guard let socket = socket(localPort: localPort, remotePort: remotePort) else { return false }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    private func place() {
        for socket in recent {
            if let ports = Self.ports(of: socket) { placed[ports] = socket }
        }
        recent = []
        if placed.count > 512 { placed = placed.filter { Self.ports(of: $0.value) == $0.key } }
    }

    /// Nil where it is not connected, or no socket any more.
    private static func ports(of socket: Int32) -> Ports? {
        guard let local = port(socket, getsockname), let remote = port(socket, getpeername) else { return nil }
        return Ports(local: local, remote: remote)
    }

    private static func port(
        _ socket: Int32, _ read: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> Int32? {
        // As long as any that is connected to; the port has the same place in both families.
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { read(socket, $0, &length) }
        }
        guard code == 0, [AF_INET, AF_INET6].contains(Int32(address.sin6_family)) else { return nil }
        return Int32(UInt16(bigEndian: address.sin6_port))
    }
}
