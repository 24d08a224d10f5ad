import CacheAPI
import CacheCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Minimal HTTP client for one `GET` over a plain socket; it returns the status only.
struct HealthProbe {
    /// The reason of a failed probe, as a predicate that follows the address.
    struct Refusal: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    // The address to connect to.
    let address: ListenAddress
    // The request target.
    let path: String
    /// Whether the listener uses TLS. The response cannot be read then, so an accepted connection counts as success.
    let isEncrypted: Bool

    /// A probe of a known address.
    init(address: ListenAddress, path: String, isEncrypted: Bool) {
        self.address = address
        self.path = path
        self.isEncrypted = isEncrypted
    }

    /// Parses `http://host[:port][/path]` and `unix:/path` of a socket; nil for any other text. The default port is 80, the
    /// default path is `/health/ready`.
    init?(url: String) {
        if case .unix(let path)? = ListenAddress(url) {
            self.init(address: .unix(path: path), path: "/health/ready", isEncrypted: false)
            return
        }
        guard url.hasPrefix("http://") else { return nil }
        let rest = url.dropFirst(7)
        let authority = String(rest.prefix { $0 != "/" })
        let path = String(rest.dropFirst(authority.count))
        guard let address = ListenAddress(authority) ?? ListenAddress("\(authority):80"), case .host = address,
            path.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
        else { return nil }
        self.init(address: address, path: path.isEmpty ? "/health/ready" : path, isEncrypted: false)
    }

    /// The status of the response. `limit` bounds the connection and each read, in whole seconds. Blocks its thread.
    /// Throws `Refusal`.
    func ask(within limit: Duration) throws(Refusal) -> Int {
        let socket = try connected(within: limit)
        defer { close(socket) }
        guard !isEncrypted else { return 200 }
        let host = if case .unix = address { "localhost" } else { "\(address)" }
        let request = "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
        let bytes = Array(request.utf8)
        guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw Refusal("accepted the connection but not the request")
        }
        return try Self.status(in: Self.firstLine(from: socket))
    }

    /// The status code of a status line such as `HTTP/1.1 200 OK` (RFC 9112 §4).
    static func status(in line: String) throws(Refusal) -> Int {
        let parts = line.split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
            throw Refusal(line.isEmpty ? "sent no response" : "sent a response that is not HTTP/1.1")
        }
        return status
    }

    /// A socket that is connected to the first address that accepts.
    private func connected(within limit: Duration) throws(Refusal) -> Int32 {
        switch address {
        case .host(let host, let port): return try Self.connected(to: host, port: port, within: limit)
        case .unix(let path):
            guard let socket = UnixSocketFile.connect(to: path) else { throw Refusal("accepts no connection") }
            Self.setLimit(limit, on: socket)
            return socket
        }
    }

    private static func connected(to host: String, port: Int, within limit: Duration) throws(Refusal) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = streamType
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0 else {
            throw Refusal("does not resolve to an address")
        }
        defer { freeaddrinfo(found) }
        var next = found
        while let candidate = next {
            if let socket = open(candidate.pointee, within: limit) { return socket }
            next = candidate.pointee.ai_next
        }
        throw Refusal("accepts no connection")
    }

    /// Nil if the address does not accept a connection in time.
    private static func open(_ candidate: addrinfo, within limit: Duration) -> Int32? {
        let descriptor = socket(candidate.ai_family, candidate.ai_socktype, candidate.ai_protocol)
        guard descriptor >= 0 else { return nil }
        setLimit(limit, on: descriptor)
        guard connect(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    private static func setLimit(_ limit: Duration, on descriptor: Int32) {
        var wait = timeval(tv_sec: Int(limit.components.seconds), tv_usec: 0)
        for option in [SO_SNDTIMEO, SO_RCVTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &wait, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// The first line of the response, at most 4 KiB. Empty if the connection ends before any byte.
    private static func firstLine(from socket: Int32) -> String {
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 512)
        while line.count < 4096, !line.contains(UInt8(ascii: "\n")) {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            line += buffer[..<count]
        }
        return String(decoding: line.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    }

    /// `SOCK_STREAM` has a type of its own in Glibc.
    private static var streamType: Int32 {
        #if canImport(Glibc)
            Int32(SOCK_STREAM.rawValue)
        #else
            SOCK_STREAM
        #endif
    }
}
