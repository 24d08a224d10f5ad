import CacheCore
import NIOCore
import NIOHTTP1

/// The rules that find the address of a client behind proxies.
package struct ClientAddressRules: Hashable, Sendable {
    /// The place of the address.
    package enum Source: String, Hashable, Sendable, CaseIterable {
        /// The connection.
        case connection
        /// `Forwarded` (RFC 7239).
        case forwarded
        /// `X-Forwarded-For`.
        case xForwardedFor
    }

    /// Whether each connection begins with a PROXY header.
    package var requiresProxyHeader: Bool
    /// The addresses of proxies. Statements of other addresses are ignored.
    package var trusted: [NetworkRange]
    package var source: Source
    /// The time for a complete PROXY header.
    package var headerTimeout = Duration.seconds(3)

    package init(requiresProxyHeader: Bool = false, trusted: [NetworkRange] = [], source: Source = .connection) {
        self.requiresProxyHeader = requiresProxyHeader
        self.trusted = trusted
        self.source = source
    }

    /// Whether the address is one of a proxy.
    func trusts(_ address: NetworkAddress) -> Bool { trusted.contains { $0.contains(address) } }
}

/// The client of a request.
struct RequestClient: Hashable, Sendable {
    /// Nil for a Unix socket, and if a proxy does not tell it.
    var address: NetworkAddress?
    /// The text for logs and traces.
    var text: String
    /// Whether the client's own connection is encrypted; nil: not stated by a proxy.
    var isEncrypted: Bool?
    /// The host that the client has named; nil: not stated by a proxy.
    var host: String?
    /// Whether the address is one of a trusted proxy, which limits do not concern.
    var isTrusted = false

    /// The address that limits count; nil: none do.
    var limitedAddress: NetworkAddress? { isTrusted ? nil : address }
}

/// The addresses of one connection, and the clients of its requests.
final class ConnectionClient: Sendable {
    private let rules: ClientAddressRules
    /// Guards the other end of the connection, as the PROXY header states it. Nil: a Unix socket.
    private let end: OrderedMutex<NetworkAddress?>
    /// The same as text, for logs; nil: unknown.
    private let text: OrderedMutex<String?>
    /// Whether the socket is one of this machine's file system, which only permitted processes can connect to.
    private let isUnix: Bool

    init(_ channel: any Channel, _ rules: ClientAddressRules) {
        self.rules = rules
        isUnix = if case .unixDomainSocket = channel.localAddress { true } else { false }
        let name = isUnix ? "unix" : channel.remoteAddress?.ipAddress
        // The zone of a link-local address is no part of it.
        let address = name.flatMap { NetworkAddress($0.prefix { $0 != "%" }) }
        end = OrderedMutex(.leaf, address)
        text = OrderedMutex(.leaf, isUnix ? name : address?.description ?? name)
    }

    /// The other end of the connection; nil for a Unix socket.
    var address: NetworkAddress? { end.withLock { $0 } }

    /// The time for a complete PROXY header.
    var headerTimeout: Duration { rules.headerTimeout }

    /// Whether the other end is a trusted proxy.
    var isTrusted: Bool { address.map(rules.trusts) ?? (isUnix && text.withLock { $0 == "unix" }) }

    /// Sets the other end that a PROXY header states. An unknown one has no address and is not trusted.
    func proxied(_ source: ProxyHeader.Source) {
        let address: NetworkAddress?
        switch source {
        case .proxy: return
        case .unknown: address = nil
        case .address(let stated): address = stated
        }
        end.withLock { $0 = address }
        text.withLock { $0 = address?.description ?? "unknown" }
    }

    /// The client of all requests without a statement of a proxy; nil: unknown.
    var client: RequestClient? {
        text.withLock { $0 }.map { RequestClient(address: address, text: $0, isTrusted: isTrusted) }
    }

    /// The client of a request with these fields. Throws `.malformedRequest` for an invalid statement of a trusted proxy.
    ///
    /// The hops are read from the right, the nearest proxy, up to the first address that is not trusted. A hop
    /// without an address ends the search, because nobody vouches for those before it.
    func client(_ values: (String) -> [String]) throws(CacheError) -> RequestClient? {
        guard rules.source != .connection, isTrusted, var client else { return client }
        let hops =
            rules.source == .forwarded
            ? try ForwardedHop.forwarded(values("Forwarded"))
            : try ForwardedHop.xForwardedFor(
                values("X-Forwarded-For"), protos: values("X-Forwarded-Proto"), hosts: values("X-Forwarded-Host"))
        for hop in hops.reversed() {
            client.isEncrypted = hop.proto.map { $0 == "https" } ?? client.isEncrypted
            client.host = hop.host ?? client.host
            guard let address = hop.address else { break }
            (client.address, client.text) = (address, address.description)
            client.isTrusted = rules.trusts(address)
            guard client.isTrusted else { break }
        }
        return client
    }

    /// The client of a request. ``RequestHeadValidator`` has checked its fields.
    func client(of head: HTTPRequestHead) -> RequestClient? {
        do throws(CacheError) { return try client { head.headers[$0] } } catch { return client }
    }
}
