import CacheAPI

/// Host and port, as in `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`, or a Unix socket, as in
/// `unix:/run/larder.sock`.
enum ListenAddress: Hashable, Sendable {
    /// Host name or address, without brackets. Port 0: any free port.
    case host(String, port: Int)
    /// An absolute path.
    case unix(path: String)

    /// Nil unless the text has both a host and a port, or an absolute path after `unix:`.
    init?(_ text: String) {
        guard !text.hasPrefix("unix:") else {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/"), !path.hasSuffix("/"), path.utf8.count <= UnixSocketFile.maxPathBytes,
                !path.utf8.contains(0)
            else { return nil }
            self = .unix(path: path)
            return
        }
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard let port = UInt16(digits), digits.allSatisfy(\.isNumber) else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("[") && host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil  // IPv6 without brackets: its last group would be read as the port
        }
        guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else { return nil }
        self = .host(String(host), port: Int(port))
    }

    /// Whether connections have an address of the client.
    var isInternet: Bool { if case .host = self { true } else { false } }

    /// Whether only this machine can connect to the address.
    var isLoopback: Bool {
        switch self {
        case .unix: true
        case .host(let host, _): host == "localhost" || host == "::1" || Self.isLoopbackIPv4(host)
        }
    }

    /// The address for a client on this machine: loopback if the listener uses all interfaces.
    var dialable: ListenAddress {
        switch self {
        case .host("0.0.0.0", let port): .host("127.0.0.1", port: port)
        case .host("::", let port): .host("::1", port: port)
        case .host, .unix: self
        }
    }

    /// The number of sockets of the listener.
    var socketCount: Int { if case .host("localhost", _) = self { 2 } else { 1 } }

    private static func isLoopbackIPv4(_ host: String) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Letters, digits, and the punctuation of names, IPv6 addresses and zones.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._:%".utf8.contains(byte)
        }
    }
}

extension ListenAddress: CustomStringConvertible {
    var description: String {
        switch self {
        case .host(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
