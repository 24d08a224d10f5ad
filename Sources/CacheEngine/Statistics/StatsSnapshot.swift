package import CacheCore

/// Integrity counters since the start.
package struct IntegrityFigures: Hashable, Sendable {
    /// Blocks, or checked parts of them, with a wrong checksum.
    package var badBlocks: Int64 = 0
    /// The bytes of these blocks or parts.
    package var badBytes: Int64 = 0
    /// Assets with content that does not match the digest stated by their upstream.
    package var badDigests: Int64 = 0
    /// Catalog rows with a wrong checksum.
    package var damagedRows: Int64 = 0
    /// Scrubs that have ended.
    package var scrubs: Int64 = 0
    /// Bytes read by the scrubber.
    package var scrubbedBytes: Int64 = 0
}

/// The load of the HTTP front end at this moment, against its admission limits.
package struct AdmissionStats: Hashable, Sendable {
    /// The active ones, their limit, and the number rejected since the start.
    package struct Load: Hashable, Sendable {
        package var active = 0
        package var limit = 0
        package var refused = 0

        package init(active: Int = 0, limit: Int = 0, refused: Int = 0) {
            self.active = active
            self.limit = limit
            self.refused = refused
        }
    }

    package var connections = Load()
    /// Reads of content, except those served at once from disk.
    package var reads = Load()
    /// Connections, event streams and requests rejected at the limits for each address since the start.
    package var addressesRefused = 0

    package init() {}
}

/// All statistics of `/v1/stats`, read at one moment.
package struct StatsSnapshot: Sendable {
    /// The size and the state of the store.
    package struct StoreFigures: Sendable {
        /// Whether the catalog was found corrupt since the start; `assets`, `extents` and `cachedBytes` may then be
        /// outdated.
        package var isDamaged: Bool
        package var assets: Int64
        package var extents: Int64
        package var cachedBytes: Int64
        /// The disk usage of all files in bytes, as measured in blocks.
        package var diskBytes: Int64
        /// Nil means that the policy has no capacity.
        package var capacityBytes: Int64?
        package var freeDiskBytes: Int64
        /// Encrypted files whose master key is missing.
        package var lockedFiles: Int64 = 0
        /// The data that a crash would lose.
        package var losses = CommitLag()
        /// The usage of quotas: origins before tags, each by name.
        package var quotas: [QuotaStatus] = []
    }

    /// The credentials of an origin's account. It contains no secret.
    package struct CredentialFigures: Hashable, Sendable {
        /// The kind of the account: `s3`, `oauth2` or `sas`.
        package var kind: String
        /// Nil: unknown, or the credentials do not end.
        package var expiresAt: Timestamp?
        /// Whether they have expired and stay in use, because their source fails.
        package var isStale: Bool
        /// The time of the latest success; nil: there was none.
        package var refreshedAt: Timestamp?
        package var refreshes: Int64
        package var failures: Int64
        /// The message of the latest failure; nil after a success.
        package var error: String?

        package init(
            kind: String, expiresAt: Timestamp? = nil, isStale: Bool = false, refreshedAt: Timestamp? = nil,
            refreshes: Int64 = 0, failures: Int64 = 0, error: String? = nil
        ) {
            self.kind = kind
            self.expiresAt = expiresAt
            self.isStale = isStale
            self.refreshedAt = refreshedAt
            self.refreshes = refreshes
            self.failures = failures
            self.error = error
        }
    }

    package var startedAt: Timestamp
    package var uptime: Duration
    package var all: TrafficFigures
    /// The origins that are mounted or had traffic, sorted by name.
    package var origins: [(name: String, figures: TrafficFigures)]
    /// The circuit breakers of mounted origins by origin name, the base URL first. Origins without a circuit breaker
    /// are left out.
    package var circuits: [String: [CircuitFigures]]
    /// The credentials of origins with an account, by origin name.
    package var credentials: [String: CredentialFigures] = [:]
    /// The servers of absolute URLs that have failed recently.
    package var failingServers: [CircuitFigures]
    package var store: StoreFigures
    package var load: TransferLoad
    package var jobs: [JobState: Int64]
    /// The webhooks, sorted by name.
    package var webhooks: [WebhookReport] = []
    /// Unfinished jobs that will probably miss their deadline.
    package var jobsAtRisk: Int64 = 0
    package var schedules = ScheduleFigures()
    package var evictions: Int64
    package var evictedBytes: Int64
    /// Evicted bytes that arrived within the hour before.
    package var evictedYoungBytes: Int64 = 0
    package var integrity = IntegrityFigures()
    /// The load of the HTTP front end, which the API enters.
    package var admission = AdmissionStats()
    /// The scrub in progress, or the last one; nil if there was none.
    package var scrub: ScrubReport?
    /// The price of 10^9 bytes from upstreams; nil: unknown.
    package var pricePerGigabyte: Double?
    /// The histograms of content requests; nil if they are not needed.
    package var requestLatencies: RequestLatencySnapshot?
    package var upstreamLatencies: UpstreamLatencySnapshot?
    /// The other nodes of the fleet.
    package var peers: [PeerFigures] = []
    /// The time since the last contact with etcd; nil without etcd.
    package var fleetLag: Duration?
    /// Whether the service is ready for requests, which the API enters.
    package var isReady = false
    /// The state of the configuration, which the API enters; nil: it cannot be reloaded.
    package var reload: ReloadFigures?
}

/// The state of the configuration in statistics.
package struct ReloadFigures: Hashable, Sendable {
    /// Whether the last reading of the configuration succeeded.
    package var isSuccessful: Bool
    /// The time of the last successful reading, that at the start included.
    package var loadedAt: Timestamp

    package init(isSuccessful: Bool, loadedAt: Timestamp) {
        self.isSuccessful = isSuccessful
        self.loadedAt = loadedAt
    }
}

/// One step of the history: the counts during it.
package struct HistoryStep: Sendable {
    /// The start of the step.
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

    /// Bytes from the cache ÷ sent bytes; nil without bytes.
    package var byteHitRatio: Double? { servedFromCacheBytes.ratio(to: servedBytes) }
}
