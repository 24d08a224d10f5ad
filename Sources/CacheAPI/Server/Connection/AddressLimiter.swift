import CacheCore
import Synchronization

/// Limits for each address of a client; nil: no limit. IPv6 addresses with the same first 64 bits count as one.
package struct AddressLimits: Hashable, Sendable {
    package var connections: Int?
    /// Event streams.
    package var streams: Int?
    package var requestsPerSecond: Int?

    package init(connections: Int? = nil, streams: Int? = nil, requestsPerSecond: Int? = nil) {
        self.connections = connections
        self.streams = streams
        self.requestsPerSecond = requestsPerSecond
    }
}

/// Counts connections, event streams and requests by the address of the client.
///
/// Clients without an address (Unix sockets), and health checks, are not limited.
final class AddressLimiter: Sendable {
    /// The kinds of objects that are counted while they exist.
    enum Kind { case connections, streams }

    /// One counted object; it ends with ``giveBack()`` or with its last reference.
    final class Claim: Sendable {
        private let limiter: AddressLimiter
        private let address: NetworkAddress
        private let kind: Kind
        private let isOver = Atomic(false)

        fileprivate init(_ limiter: AddressLimiter, _ address: NetworkAddress, _ kind: Kind) {
            self.limiter = limiter
            self.address = address
            self.kind = kind
        }

        func giveBack() { if !isOver.exchange(true, ordering: .relaxed) { limiter.end(kind, address) } }

        deinit { giveBack() }
    }

    /// The use of one address.
    private struct Use {
        var connections = 0
        var streams = 0
        /// The requests that may come at once, at the uptime `since`: it grows by the limit each second, up to the limit.
        var tokens = 0.0
        var since: Duration?
    }

    /// The number of addresses from which idle ones are removed, at each doubling.
    private static let manyAddresses = 10_000

    private let limits: @Sendable () -> AddressLimits
    private let uptime: @Sendable () -> Duration
    /// Guards the use of each address, and the number of addresses at which idle ones are removed.
    private let uses = OrderedMutex(.leaf, (table: [NetworkAddress: Use](), most: manyAddresses))
    /// The refusals since the start.
    private let refusals = Atomic(0)

    init(limits: @escaping @Sendable () -> AddressLimits, uptime: @escaping @Sendable () -> Duration) {
        self.limits = limits
        self.uptime = uptime
    }

    /// The number of refusals since the start.
    var refused: Int { refusals.load(ordering: .relaxed) }

    /// Counts a connection or a stream. Throws `.rateLimited` at the limit; nil: the client has no address.
    func claim(_ kind: Kind, by address: NetworkAddress?) throws(CacheError) -> Claim? {
        guard let address = address?.counted else { return nil }
        let (limits, path) = (limits(), kind == .connections ? \Use.connections : \Use.streams)
        let most = (kind == .connections ? limits.connections : limits.streams) ?? .max
        let isCounted = uses.withLock { uses in
            guard uses.table[address, default: Use()][keyPath: path] < most else { return false }
            uses.table[address, default: Use()][keyPath: path] += 1
            return true
        }
        guard isCounted else {
            throw refusal(
                kind == .connections ? "connections" : "event streams", kind == .connections ? "connections" : "streams"
            )
        }
        return Claim(self, address, kind)
    }

    /// Whether requests are limited.
    var limitsRequests: Bool { limits().requestsPerSecond != nil }

    /// Counts a request. Throws `.rateLimited` above the limit.
    func countRequest(by address: NetworkAddress?) throws(CacheError) {
        guard let most = limits().requestsPerSecond, let address = address?.counted else { return }
        let now = uptime()
        let isCounted = uses.withLock { uses in
            if uses.table.count >= uses.most { Self.removeIdle(&uses, at: now) }
            var use = uses.table[address] ?? Use()
            let elapsed = use.since.map { (now - $0).inSeconds * Double(most) } ?? Double(most)
            use.tokens = min(Double(most), use.tokens + elapsed)
            use.since = now
            let isCounted = use.tokens >= 1
            if isCounted { use.tokens -= 1 }
            uses.table[address] = use
            return isCounted
        }
        guard isCounted else { throw refusal("requests per second", "requestsPerSecond") }
    }

    private static func removeIdle(_ uses: inout (table: [NetworkAddress: Use], most: Int), at now: Duration) {
        uses.table = uses.table.filter { _, use in
            use.connections > 0 || use.streams > 0 || use.since.map { now - $0 < .seconds(1) } ?? false
        }
        uses.most = max(manyAddresses, 2 * uses.table.count)
    }

    private func end(_ kind: Kind, _ address: NetworkAddress) {
        uses.withLock { uses in
            guard var use = uses.table[address] else { return }
            switch kind {
            case .connections: use.connections -= 1
            case .streams: use.streams -= 1
            }
            let isIdle = use.connections == 0 && use.streams == 0 && use.since == nil
            uses.table[address] = isIdle ? nil : use
        }
    }

    private func refusal(_ noun: String, _ setting: String) -> CacheError {
        refusals.add(1, ordering: .relaxed)
        return CacheError(
            .rateLimited, "This address has too many \(noun) (limits.perAddress.\(setting)); repeat later.")
    }
}
