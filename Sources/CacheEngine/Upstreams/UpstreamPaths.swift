import CacheCore

/// Remembers the network path to each upstream address (scheme, host and port), so that a new asset need not measure
/// it, and the addresses that require HTTP/1.1.
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

    private struct State {
        var paths: BoundedTable<String, Path>
        /// Observations of the kind `http1Required`.
        var http1Required: BoundedTable<String, Observation>
    }

    /// Guards the paths and observations, by address.
    private let state: OrderedMutex<State>
    private let uptime: @Sendable () -> Duration

    /// - Parameter limit: The maximum number of remembered addresses.
    init(limit: Int = 4096, uptime: @escaping @Sendable () -> Duration) {
        state = OrderedMutex(
            .leaf,
            State(paths: BoundedTable(capacity: limit), http1Required: BoundedTable(capacity: limit)))
        self.uptime = uptime
    }

    /// The path to the address of `url`; nil before its first response, and some time after the latest one.
    subscript(url: String) -> Path? {
        let (address, now) = (UpstreamURL.address(of: url), uptime())
        return state.withLock { $0.paths[address] }.flatMap { now - $0.answeredAt < Observation.lifetime ? $0 : nil }
    }

    /// The observations about the addresses of `urls`.
    func observations(of urls: [String]) -> [Observation] {
        var addresses: Set<String> = []
        return urls.map { UpstreamURL.address(of: $0) }.filter { addresses.insert($0).inserted }.flatMap { address in
            let multiplexed = self[address].flatMap { path in
                path.isMultiplexed
                    ? Observation(
                        kind: .multiplexed, scope: .address(address), since: path.since,
                        expiresAt: path.answeredAt + Observation.lifetime,
                        evidence: "The latest response came over HTTP/2.") : nil
            }
            return [multiplexed, http1Requirement(address)].compactMap(\.self)
        }
    }

    /// Drops the paths to the addresses of `urls`, and the observations about them.
    func forget(_ urls: [String]) {
        state.withLock { state in
            for address in urls.map({ UpstreamURL.address(of: $0) }) {
                (state.paths[address], state.http1Required[address]) = (nil, nil)
            }
        }
    }

    /// Whether a transfer from `url` can be paused. For https this is unknown, and assumed false, before the first
    /// response.
    func hasFlowControl(_ url: String) -> Bool {
        self[url].map { !$0.isMultiplexed } ?? !url.lowercased().hasPrefix("https:")
    }

    /// Whether requests for `url` should use HTTP/1.1, because its address has required it.
    func requiresHTTP1(_ url: String) -> Bool { http1Requirement(UpstreamURL.address(of: url)) != nil }

    private func http1Requirement(_ address: String) -> Observation? {
        let now = uptime()
        return state.withLock { $0.http1Required[address] }.flatMap { now < $0.expiresAt ? $0 : nil }
    }

    /// Records the path of a response from the address of `url`.
    func answered(_ url: String, with head: UpstreamHead) {
        let (address, now) = (UpstreamURL.address(of: url), uptime())
        if head.requiredHTTP1 { required(at: UpstreamURL.address(of: head.finalURL), now) }
        state.withLock { state in
            let before = state.paths[address]
            guard let latest = head.timings.roundTrip ?? before?.roundTrip else { return }
            let roundTrip = before.map { ($0.roundTrip * 3 + latest) / 4 } ?? latest
            let isSame = before?.isMultiplexed == head.isMultiplexed
            state.paths[address] = Path(
                roundTrip: roundTrip, isMultiplexed: head.isMultiplexed, since: isSame ? before?.since ?? now : now,
                answeredAt: now)
        }
    }

    /// Records that the address has required HTTP/1.1.
    private func required(at address: String, _ now: Duration) {
        let since = http1Requirement(address)?.since ?? now
        let observation = Observation(
            kind: .http1Required, scope: .address(address), since: since, expiresAt: now + Observation.lifetime,
            evidence: "A stream was reset with HTTP_1_1_REQUIRED.")
        state.withLock { $0.http1Required[address] = observation }
    }
}

extension FillLedger {
    /// Adopts the known path to the address of `url` for planning.
    mutating func follow(_ paths: UpstreamPaths, to url: String) {
        roundTrip = paths[url]?.roundTrip ?? .zero
        hasFlowControl = paths.hasFlowControl(url)
    }
}
