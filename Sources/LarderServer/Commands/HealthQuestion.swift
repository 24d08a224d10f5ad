import CacheCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// One `GET` over a plain socket, for its status alone.
struct HealthQuestion {
    /// Why there is no status, to follow the address in a sentence.
    struct Refusal: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    let address: ListenAddress
    let path: String
    /// The answer cannot be read; that somebody takes the connection has to do.
    let isEncrypted: Bool

    init(address: ListenAddress, path: String, isEncrypted: Bool) {
        self.address = address
        self.path = path
        self.isEncrypted = isEncrypted
    }

    /// Takes `http://host[:port][/path]` apart; nil where it is something else.
    init?(url: String) {
        guard url.hasPrefix("http://") else { return nil }
        let rest = url.dropFirst(7)
        let authority = String(rest.prefix { $0 != "/" })
        let path = String(rest.dropFirst(authority.count))
        guard let address = ListenAddress(authority) ?? ListenAddress("\(authority):80"),
            path.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
        else { return nil }
        self.init(address: address, path: path.isEmpty ? "/health/ready" : path, isEncrypted: false)
    }

    /// The status of the answer; `limit` bounds the connection and each read. Blocks its thread.
    func ask(within limit: Duration) throws(Refusal) -> Int {
        let socket = try connected(within: limit)
        defer { close(socket) }
        guard !isEncrypted else { return 200 }
        let request = "GET \(path) HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n"
        let bytes = Array(request.utf8)
        guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw Refusal("took the connection and no request")
        }
        return try Self.status(in: Self.firstLine(from: socket))
    }

    /// The number in `HTTP/1.1 200 OK` (RFC 9112 §4).
    static func status(in line: String) throws(Refusal) -> Int {
        let parts = line.split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
            throw Refusal(line.isEmpty ? "gave no answer" : "does not speak HTTP")
        }
        return status
    }

    private func connected(within limit: Duration) throws(Refusal) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Self.streamType
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address.host, String(address.port), &hints, &found) == 0 else {
            throw Refusal("is no address that resolves")
        }
        defer { freeaddrinfo(found) }
        var next = found
        while let candidate = next {
            if let socket = Self.open(candidate.pointee, within: limit) { return socket }
            next = candidate.pointee.ai_next
        }
        throw Refusal("takes no connection")
    }

    private static func open(_ candidate: addrinfo, within limit: Duration) -> Int32? {
        let descriptor = socket(candidate.ai_family, candidate.ai_socktype, candidate.ai_protocol)
        guard descriptor >= 0 else { return nil }
        var wait = timeval(tv_sec: Int(limit.components.seconds), tv_usec: 0)
        for option in [SO_SNDTIMEO, SO_RCVTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &wait, socklen_t(MemoryLayout<timeval>.size))
        }
        guard connect(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

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

    private static var streamType: Int32 {
        #if canImport(Glibc)
            Int32(SOCK_STREAM.rawValue)
        #else
            SOCK_STREAM
        #endif
    }
}
