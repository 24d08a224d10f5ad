package import CacheCore

/// The figures of one origin, or of all; each is counted once, so that groups add up.
package struct TrafficFigures: Hashable, Sendable, Codable {
    /// By class; their sum is the total.
    package var requests: [String: Int64] = [:]
    package var clientAborted: Int64 = 0
    /// Body bytes handed to clients = from cache + after fill.
    package var servedFromCacheBytes: Int64 = 0
    package var servedAfterFillBytes: Int64 = 0
    /// Body bytes that upstreams sent us, for readers and for jobs.
    package var upstreamBytes: Int64 = 0
    /// The part of them fetched for prefetch jobs.
    package var upstreamPrefetchBytes: Int64 = 0
    /// The part of them that was on disk already or was not wanted.
    package var refetchedBytes: Int64 = 0
    package var fillsSucceeded: Int64 = 0
    package var fillsFailed: Int64 = 0
    package var fillsTimedOut: Int64 = 0
    package var fillsCancelled: Int64 = 0
    package var fillsRetried: Int64 = 0
    /// Second requests for a window whose first one's answer was late, and how many of them were answered first.
    package var fillsHedged: Int64 = 0
    package var hedgesWon: Int64 = 0
    /// Bytes of the windows that upstreams answered; what was asked for twice counts twice.
    package var requestedBytes: Int64 = 0
    /// Requests sent to upstreams for readers, those that were sent again or hedged among them.
    package var upstreamRequests: Int64 = 0
    /// Requests sent to upstreams for prefetch jobs.
    package var upstreamPrefetchRequests: Int64 = 0
    /// Waits of readers for bytes, by `WaitOutcome.name`.
    package var waits: [String: Int64] = [:]

    package init() {}

    package func count(_ requestClass: ReadOutcome.Class) -> Int64 { requests[requestClass.rawValue] ?? 0 }
    package var requestsTotal: Int64 { requests.values.reduce(0, +) }
    package var servedBytes: Int64 { servedFromCacheBytes + servedAfterFillBytes }
    /// (hit + revalidated + stale) ÷ total; 0 where nothing was asked.
    package var requestHitRatio: Double {
        ratio(count(.hit) + count(.revalidated) + count(.stale), requestsTotal)
    }
    package var byteHitRatio: Double { ratio(servedFromCacheBytes, servedBytes) }
    package var upstreamRatio: Double { ratio(upstreamBytes, servedBytes) }
    /// Upstream requests for readers ÷ content requests; 0 where nothing was requested.
    package var requestsPerClientRequest: Double { ratio(upstreamRequests, requestsTotal) }
    /// Body bytes from upstreams ÷ requests to them; 0 where none was sent.
    package var bytesPerUpstreamRequest: Double { ratio(upstreamBytes, upstreamRequests + upstreamPrefetchRequests) }

    /// The keys of `waits`.
    package static let waitOutcomes: [WaitOutcome] = [
        .arrived, .writerVanished, .deadlinePassed, .gaveUp(.internal), .generationChanged, .shuttingDown,
    ]

    private func ratio(_ part: Int64, _ whole: Int64) -> Double { whole == 0 ? 0 : Double(part) / Double(whole) }
}

/// What was found of bytes on disk since the start.
package struct IntegrityFigures: Hashable, Sendable {
    /// Blocks, or parts of them, that were not what was written.
    package var badBlocks: Int64 = 0
    package var badBytes: Int64 = 0
    /// Assets that are not what their upstream stated.
    package var badDigests: Int64 = 0
    /// Of the catalog, that were not what was written.
    package var damagedRows: Int64 = 0
    package var scrubs: Int64 = 0
    package var scrubbedBytes: Int64 = 0

    package init() {}
}

/// What the counter has taken on at this moment.
package struct CounterFigures: Hashable, Sendable {
    /// What is going on, of as many as there may be, and how many more were turned away since the start.
    package struct Places: Hashable, Sendable {
        package var active = 0
        package var limit = 0
        package var refused = 0

        package init() {}

        package init(active: Int, limit: Int, refused: Int) {
            self.active = active
            self.limit = limit
            self.refused = refused
        }
    }

    package var connections = Places()
    /// Reads of content, those that are answered at once from disk left out.
    package var reads = Places()

    package init() {}
}

/// Everything `/v1/stats` tells, read at one moment.
package struct StatsSnapshot: Sendable {
    package struct StoreFigures: Sendable {
        /// Whether the catalog was found damaged since the start; `assets`, `extents` and `cachedBytes` may be those of before.
        package var isDamaged: Bool
        package var assets: Int64
        package var extents: Int64
        package var cachedBytes: Int64
        package var diskBytes: Int64
        package var capacityBytes: Int64?
        package var freeDiskBytes: Int64
        /// What a crash would lose.
        package var losses = LossWindow()
        /// Origins' first, by name.
        package var quotas: [QuotaStanding] = []
    }

    package var startedAt: Timestamp
    package var uptime: Duration
    package var all: TrafficFigures
    /// Those that are mounted or were asked for anything, sorted by name.
    package var origins: [(name: String, figures: TrafficFigures)]
    /// How the addresses of mounted origins stand, the base URL first; those without a circuit breaker are not there.
    package var circuits: [String: [CircuitFigures]]
    /// The servers of absolute URLs that have failed lately.
    package var failingServers: [CircuitFigures]
    package var store: StoreFigures
    package var load: TransferLoad
    package var jobs: [JobState: Int64]
    package var evictions: Int64
    package var evictedBytes: Int64
    package var integrity = IntegrityFigures()
    package var counter = CounterFigures()
    /// The scrub under way or the last one.
    package var scrub: ScrubReport?
}

/// One step of the history: what was counted during it.
package struct HistoryStep: Sendable {
    package var at: Timestamp
    package var figures: TrafficFigures
}

/// One row of the list of most read assets.
package struct TopAsset: Sendable {
    package var assetID: AssetID
    package var key: String
    package var servedBytes: Int64
    package var servedFromCacheBytes: Int64
    package var requests: Int64
}
