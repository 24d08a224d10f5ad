/// Host and port, as in `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`.
struct ListenAddress: Hashable, Sendable {
    /// Host name or address, without brackets.
    var host: String
    /// Port; 0: any free port.
    var port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Nil unless the text has both a host and a port.
    init?(_ text: String) {
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
        self.init(host: String(host), port: Int(port))
    }

    /// Whether only this machine can connect to the address.
    var isLoopback: Bool {
        host == "localhost" || host == "::1" || isLoopbackIPv4
    }

    /// The address for a client on this machine: loopback if the listener uses all interfaces.
    var dialable: ListenAddress {
        switch host {
        case "0.0.0.0": ListenAddress(host: "127.0.0.1", port: port)
        case "::": ListenAddress(host: "::1", port: port)
        default: self
        }
    }

    private var isLoopbackIPv4: Bool {
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
    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
