import CacheCore
import Synchronization

/// Remembers the network path to each upstream address (scheme, host and port), so that a new asset need not measure
/// it.
final class UpstreamPaths: Sendable {
    struct Path: Hashable, Sendable {
        /// The smoothed time from a request over an existing connection to the first byte.
        var roundTrip: Duration
        /// Whether the address answers over HTTP/2, where a transfer cannot be paused.
        var isMultiplexed: Bool
        /// The uptime of the first response over this protocol.
        var since: Duration
        /// The uptime of the latest response.
        var answeredAt: Duration
    }

    /// Guards the paths, by address.
    private let paths = Mutex<[String: Path]>([:])
    /// The maximum number of remembered paths; all are dropped when it is exceeded.
    private let limit: Int
    private let uptime: @Sendable () -> Duration

    init(limit: Int = 4096, uptime: @escaping @Sendable () -> Duration) {
        self.limit = limit
        self.uptime = uptime
    }

    /// The path to the address of `url`; nil before its first response, and some time after the latest one.
    subscript(url: String) -> Path? {
        let (address, now) = (UpstreamURL.address(of: url), uptime())
        return paths.withLock { $0[address] }.flatMap { now - $0.answeredAt < Observation.lifetime ? $0 : nil }
    }

    /// The observations about the addresses of `urls`.
    func observations(of urls: [String]) -> [Observation] {
        var addresses: Set<String> = []
        return urls.compactMap { url in
            guard let path = self[url], path.isMultiplexed, addresses.insert(UpstreamURL.address(of: url)).inserted
            else { return nil }
            return Observation(
                kind: .multiplexed, scope: .address(UpstreamURL.address(of: url)), since: path.since,
                expiresAt: path.answeredAt + Observation.lifetime, evidence: "The latest response came over HTTP/2.")
        }
    }

    /// Drops the paths to the addresses of `urls`.
    func forget(_ urls: [String]) {
        let addresses = urls.map { UpstreamURL.address(of: $0) }
        paths.withLock { paths in for address in addresses { paths[address] = nil } }
    }

    /// Whether a transfer from `url` can be paused. For https this is unknown, and assumed false, before the first
    /// response.
    func hasFlowControl(_ url: String) -> Bool {
        self[url].map { !$0.isMultiplexed } ?? !url.lowercased().hasPrefix("https:")
    }

    /// Records the path of a response from the address of `url`.
    func answered(_ url: String, with head: UpstreamHead) {
        let (address, now) = (UpstreamURL.address(of: url), uptime())
        paths.withLock { paths in
            let before = paths[address]
            guard let latest = head.timings.roundTrip ?? before?.roundTrip else { return }
            if before == nil, paths.count >= limit { paths = [:] }
            let roundTrip = before.map { ($0.roundTrip * 3 + latest) / 4 } ?? latest
            let isSame = before?.isMultiplexed == head.isMultiplexed
            paths[address] = Path(
                roundTrip: roundTrip, isMultiplexed: head.isMultiplexed, since: isSame ? before?.since ?? now : now,
                answeredAt: now)
        }
    }
}

extension FillLedger {
    /// Adopts the known path to the address of `url` for planning.
    mutating func follow(_ paths: UpstreamPaths, to url: String) {
        roundTrip = paths[url]?.roundTrip ?? .zero
        hasFlowControl = paths.hasFlowControl(url)
    }
}
