import CCurl
import Glibc

/// The C callbacks of libcurl. Each obtains its exchange from the context pointer and runs on that exchange's worker
/// thread.
enum CurlCallbacks {
    /// CURLOPT_HEADERFUNCTION: passes one header line to the exchange.
    static let header: curl_write_callback = { bytes, size, count, context in
        guard let bytes, let exchange = exchange(context) else { return 0 }
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return exchange.receivedHead(line) ? line.count : Int(CURL_WRITEFUNC_ERROR)
    }

    /// CURLOPT_WRITEFUNCTION: passes body bytes to the exchange, or pauses libcurl.
    static let body: curl_write_callback = { bytes, size, count, context in
        guard let bytes, let exchange = exchange(context) else { return 0 }
        let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
        // libcurl keeps these bytes, stops reading, and delivers them again when the transfer resumes.
        let now = exchange.now()
        guard !exchange.takesNothing(at: now) else { return Int(CURL_WRITEFUNC_PAUSE) }
        return exchange.receivedBody(piece, at: now) ? piece.count : Int(CURL_WRITEFUNC_ERROR)
    }

    /// CURLOPT_RESOLVER_START_FUNCTION: records the start of a name lookup.
    static let lookup: curl_resolver_start_callback = { _, _, context in
        exchange(context)?.hop.hasLookedUp = true
        return 0
    }

    /// CURLOPT_OPENSOCKETFUNCTION: checks each address with the address guard before a socket is created for it.
    static let openSocket: curl_opensocket_callback = { context, _, target in
        guard let target, let exchange = exchange(context) else { return CURL_SOCKET_BAD }
        let bytes = addressBytes(of: target)
        let address = text(of: bytes)
        let isRefused = exchange.refuses(bytes)
        if exchange.hop.collects(address) {
            exchange.touch()
            return CURL_SOCKET_BAD
        }
        guard !isRefused else { return CURL_SOCKET_BAD }
        let made = makeSocket(for: target)
        if made >= 0 { exchange.opened(made, for: address) } else { exchange.hop.socketError = errno }
        return made
    }

    /// CURLOPT_PREREQFUNCTION: repeats the check of the address guard. A reused connection may have been made by a
    /// transfer that allowed private addresses.
    static let beforeRequest: curl_prereq_callback = { context, remote, _, remotePort, localPort in
        guard let remote, let exchange = exchange(context) else { return CURL_PREREQFUNC_ABORT }
        let address = String(cString: remote)
        guard !exchange.refuses(addressBytes(of: address)) else {
            exchange.refused()
            return CURL_PREREQFUNC_ABORT
        }
        guard exchange.mayUse(address, localPort: localPort, remotePort: remotePort) else {
            return CURL_PREREQFUNC_ABORT
        }
        exchange.connected(to: address, port: remotePort, from: localPort)
        return CURL_PREREQFUNC_OK
    }

    /// Creates a socket of the kind that libcurl asks for.
    static func makeSocket(for target: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        let kind = target.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        return socket(target.pointee.family, kind, target.pointee.protocol)
    }

    private static func exchange(_ context: UnsafeMutableRawPointer?) -> CurlExchange? {
        context.map { Unmanaged<CurlExchange>.fromOpaque($0).takeUnretainedValue() }
    }

    /// The address in network order, 4 or 16 bytes; empty for other families.
    ///
    /// Reads through the pointer instead of a copy: an IPv6 address extends beyond the declared `sockaddr`, into the
    /// storage that libcurl allocates behind it (`addrlen` bytes in all).
    static func addressBytes(of target: UnsafeMutablePointer<curl_sockaddr>) -> [UInt8] {
        guard let start = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return [] }
        let (offset, count) =
            switch target.pointee.family {
            case AF_INET: (MemoryLayout<sockaddr_in>.offset(of: \.sin_addr), 4)
            case AF_INET6: (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr), 16)
            default: (Int?.none, 0)
            }
        guard let offset, Int(target.pointee.addrlen) >= offset + count else { return [] }
        return Array(UnsafeRawBufferPointer(start: UnsafeRawPointer(target) + start + offset, count: count))
    }

    /// The printed form of an address of 4 or 16 bytes; empty for others.
    private static func text(of bytes: [UInt8]) -> String {
        guard bytes.count == 4 || bytes.count == 16 else { return "" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The bytes of a printed address, without its zone (`%eth0`); empty if it is no address.
    static func addressBytes(of text: String) -> [UInt8] {
        let bare = text.split(separator: "%").first.map(String.init) ?? text
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, bare, &bytes) == 1 { return Array(bytes[..<4]) }
        return inet_pton(AF_INET6, bare, &bytes) == 1 ? bytes : []
    }
}
