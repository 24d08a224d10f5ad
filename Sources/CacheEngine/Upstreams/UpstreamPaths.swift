import CacheCore
import Synchronization

/// Remembers the network path to each upstream address (scheme, host and port): a new asset need not measure it again.
final class UpstreamPaths: Sendable {
    struct Path: Hashable, Sendable {
        /// From a request over a kept connection to the first byte, smoothed.
        var roundTrip: Duration
        /// Whether the address answers over HTTP/2, where a transfer cannot be paused.
        var isMultiplexed: Bool
    }

    /// The paths by address; the lock guards nothing else.
    private let paths = Mutex<[String: Path]>([:])
    /// The number of remembered addresses; beyond it the memory starts again.
    private let limit: Int

    init(limit: Int = 4096) { self.limit = limit }

    /// The path to the address of `url`; nil before its first response.
    subscript(url: String) -> Path? {
        let address = UpstreamURL.address(of: url)
        return paths.withLock { $0[address] }
    }

    /// Whether a transfer from `url` can be paused. Over TLS the first response of an address tells.
    func hasFlowControl(_ url: String) -> Bool {
        self[url].map { !$0.isMultiplexed } ?? !url.lowercased().hasPrefix("https:")
    }

    /// The address of `url` has sent a response head.
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
    /// Plans for the path to the address of `url`.
    mutating func follow(_ paths: UpstreamPaths, to url: String) {
        roundTrip = paths[url]?.roundTrip ?? .zero
        hasFlowControl = paths.hasFlowControl(url)
    }
}
