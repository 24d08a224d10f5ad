import CacheCore
import Glibc
import NIOCore

/// The listening sockets that the process which started the service has opened for it, such as systemd
/// (`sd_listen_fds(3)`). They take the place of `listen.address`.
struct InheritedSockets: Hashable, Sendable {
    /// One listening stream socket.
    struct Socket: Hashable, Sendable {
        let descriptor: Int32
        let address: ListenAddress
    }

    let sockets: [Socket]

    /// The descriptor of the first socket (`SD_LISTEN_FDS_START`).
    private static let first: Int32 = 3
    /// The maximum number of sockets.
    private static let most = 64

    /// Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`; nil: there are no sockets for this process. Programs that the
    /// service starts do not inherit them.
    ///
    /// Throws an error of `LISTEN_FDS` with the descriptor and its name if one is no listening stream socket of the
    /// Internet or of Unix.
    ///
    /// - Parameter process: The number of this process; sockets of another process are ignored.
    init?(environment: [String: String], process: Int32) throws(SettingsError) {
        guard environment["LISTEN_PID"] == String(process), let count = environment["LISTEN_FDS"], count != "0" else {
            return nil
        }
        guard let count = Int32(count), (1...Int32(Self.most)).contains(count) else {
            throw SettingsError("LISTEN_FDS", "\"\(count)\" is not a number from 0 to \(Self.most)")
        }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var sockets: [Socket] = []
        for (index, descriptor) in (Self.first..<Self.first + count).enumerated() {
            do throws(Fault) {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                sockets.append(Socket(descriptor: descriptor, address: try Self.address(of: descriptor)))
            } catch {
                let name = index < names.count && !names[index].isEmpty ? " (\(names[index]))" : ""
                throw SettingsError("LISTEN_FDS", "descriptor \(descriptor)\(name) \(error.reason)")
            }
        }
        self.sockets = sockets
    }

    /// What is wrong with a descriptor.
    private struct Fault: Error {
        let reason: String
    }

    private static func address(of descriptor: Int32) throws(Fault) -> ListenAddress {
        guard let type = option(SO_TYPE, of: descriptor) else {
            throw Fault(reason: "is not a socket: \(String(cString: strerror(errno)))")
        }
        guard type == Int32(SOCK_STREAM.rawValue) else {
            throw Fault(reason: "is no stream socket; use ListenStream= in the socket unit")
        }
        guard option(SO_ACCEPTCONN, of: descriptor) == 1 else {
            throw Fault(reason: "does not listen; use Accept=no in the socket unit")
        }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard code == 0 else { throw Fault(reason: "has no address: \(String(cString: strerror(errno)))") }
        return try address(storage, length)
    }

    private static func address(_ storage: sockaddr_storage, _ length: socklen_t) throws(Fault) -> ListenAddress {
        let internet: SocketAddress? = withUnsafeBytes(of: storage) { bytes in
            switch Int32(storage.ss_family) {
            case AF_INET: SocketAddress(bytes.load(as: sockaddr_in.self))
            case AF_INET6: SocketAddress(bytes.load(as: sockaddr_in6.self))
            default: nil
            }
        }
        if let host = internet?.ipAddress, let port = internet?.port { return .host(host, port: port) }
        guard Int32(storage.ss_family) == AF_UNIX else {
            throw Fault(reason: "is neither a socket of the Internet nor of Unix")
        }
        let path = withUnsafeBytes(of: storage) { bytes in
            bytes[MemoryLayout<sa_family_t>.size..<max(Int(length), MemoryLayout<sa_family_t>.size)].prefix { $0 != 0 }
        }
        guard !path.isEmpty else { throw Fault(reason: "has an abstract name; use a path in the socket unit") }
        return .unix(path: String(decoding: path, as: UTF8.self))
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
