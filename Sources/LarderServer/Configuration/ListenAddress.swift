/// A host and a port to listen on, as in `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`.
struct ListenAddress: Hashable, Sendable {
    /// Without brackets.
    var host: String
    /// 0: any free port.
    var port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Nil where the text does not name both parts.
    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard let port = UInt16(digits), digits.allSatisfy(\.isNumber) else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("[") && host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil  // an IPv6 address without brackets: its last group would be taken for the port
        }
        guard !host.isEmpty, host.utf8.allSatisfy(Self.isHostByte) else { return nil }
        self.init(host: String(host), port: Int(port))
    }

    /// Whether only this machine can reach it.
    var isLoopback: Bool {
        host == "localhost" || host == "::1" || isLoopbackIPv4
    }

    /// The address for a client on this machine: loopback where the listener takes every interface.
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
