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
    }

    /// Guards the paths, by address.
    private let paths = Mutex<[String: Path]>([:])
    /// The maximum number of remembered paths; all are dropped when it is exceeded.
    private let limit: Int

    init(limit: Int = 4096) { self.limit = limit }

    /// The path to the address of `url`; nil before its first response.
    subscript(url: String) -> Path? {
        let address = UpstreamURL.address(of: url)
        return paths.withLock { $0[address] }
    }

    /// Whether a transfer from `url` can be paused. For https this is unknown, and assumed false, before the first
    /// response.
    func hasFlowControl(_ url: String) -> Bool {
        self[url].map { !$0.isMultiplexed } ?? !url.lowercased().hasPrefix("https:")
    }

    /// Records the path of a response from the address of `url`.
    func answered(_ url: String, with head: UpstreamHead) {
        let address = UpstreamURL.address(of: url)
        paths.withLock { paths in
            let before = paths[address]?.roundTrip
            guard let latest = head.timings.roundTrip ?? before else { return }
            if paths[address] == nil, paths.count >= limit { paths = [:] }
            let roundTrip = before.map { ($0 * 3 + latest) / 4 } ?? latest
            paths[address] = Path(roundTrip: roundTrip, isMultiplexed: head.isMultiplexed)
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
