import CacheCore

/// The connection of one hop: its choice, and the addresses that were tried. A value.
struct HopConnection {
    /// The creation of a socket for an address.
    struct Attempt {
        let address: String
        let at: Instant
    }

    /// The resolution of the host.
    enum Resolution {
        /// The addresses are known, or the host is an address.
        case unneeded
        /// libcurl resolves the name and offers one address after the other. None is connected to; this pass ends
        /// without a packet to the upstream, and the next one uses the order of the address table.
        case collecting([String])
        case finished
    }

    /// Whether libcurl has started a name lookup. A transfer that waits for a connection of another one starts none.
    var hasLookedUp = false
    /// Whether the hop must not reuse a connection.
    var needsFresh = false
    /// Whether a socket was created, so that the connection is new.
    var hasOpenedSocket: Bool { !attempts.isEmpty }
    /// The last socket that was created; nil: none.
    var openedSocket: Int32?
    /// Whether the request was sent over an HTTP/2 connection.
    var wasSentAsStream = false
    /// The `errno` of a failed socket creation; 0: none.
    var socketError: Int32 = 0
    /// The kind of address that the address guard refused; nil: none.
    var forbidden: String?
    var attempts: [Attempt] = []
    var resolution = Resolution.unneeded
    /// The addresses of the current pass: one of each family at most.
    ///
    /// libcurl 7.88 gives each further address of a family half of the time that is left, and notices the end of that
    /// time late. So each pass has one, and the timers of this module end it.
    private(set) var candidates: [String] = []
    /// The addresses of earlier passes; none has accepted a connection.
    private var exhausted: Set<String> = []
    /// The number of passes that are left, with the current one.
    private(set) var passes = 0
    /// The address of the connection on which the request was sent; nil: none yet.
    var address: String?

    /// Chooses the addresses of the next pass from all of them in their order.
    mutating func choose(from order: [String]) {
        let left = order.filter { !exhausted.contains($0) }
        let first = left.first
        let other = left.first { $0.contains(":") != first?.contains(":") }
        candidates = [first, other].compactMap(\.self)
        let countOfIPv6 = left.count { $0.contains(":") }
        passes = max(countOfIPv6, left.count - countOfIPv6)
    }

    /// Ends a pass where no address accepted a connection. False: it was the last one.
    mutating func exhaust() -> Bool {
        guard passes > 1 else { return false }
        exhausted.formUnion(candidates)
        (attempts, openedSocket, socketError) = ([], nil, 0)
        return true
    }

    /// Records an offered address while addresses are collected. Whether they are.
    mutating func collects(_ address: String) -> Bool {
        guard case .collecting(let others) = resolution else { return false }
        resolution = .collecting(others + [address])
        return true
    }

    /// The addresses that have failed although the connection to `winner` was established: those tried before it in its
    /// family, one after the other, and those of the other family that were slower in spite of their lead.
    func losers(against winner: String) -> [String] {
        guard let won = attempts.last(where: { $0.address == winner }) else { return [] }
        return attempts.filter { attempt in
            guard attempt.address != winner, attempt.at <= won.at else { return false }
            return attempt.isIPv6 == won.isIPv6 || attempt.at.duration(to: won.at) >= Self.familyLead
        }.map(\.address)
    }

    /// The lead of the preferred family (RFC 8305 §8), within the timers' precision.
    private static let familyLead = Duration.milliseconds(150)
}

extension HopConnection.Attempt {
    fileprivate var isIPv6: Bool { address.contains(":") }
}
