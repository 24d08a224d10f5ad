import CacheCore
import CacheStore
import CacheTracing
import Logging

/// The shared services that an open asset works with.
struct EngineContext: Sendable {
    let store: Store
    let commits: CommitQueue
    let upstream: any Upstream
    /// Disk usage, segments and the reservations of fills.
    let space: SpaceReservations
    let evictionLog: EvictionLog
    /// Counters of statistics and metrics.
    let counters: CacheCounters
    /// Counters of moving bytes, for the live statistics.
    let live = LiveCounters()
    let requestLatencies: RequestLatencies
    let upstreamLatencies: UpstreamLatencies
    /// The recent changes of state and warnings.
    let events: EventLog
    let tracer: Tracer
    /// The recorder of reads for simulations.
    let traceRecorder: AccessTraceRecorder
    /// Threads for blocking file operations.
    let diskThreads: DiskThreads
    let credentials: CredentialsFileCache
    /// The accounts of the origins and the links to their content.
    let accounts: OriginAccounts
    let openAssets: OpenAssets
    /// Stored error statuses of upstreams.
    let refusals: NegativeCache
    /// All fills in progress, for the management API.
    let fillRegistry: FillRegistry
    /// Circuit breakers, retry budgets and latencies of upstreams.
    let health: OriginHealth
    /// Round-trip times and HTTP versions of upstream addresses.
    let paths: UpstreamPaths
    /// The other nodes of the fleet.
    let peers: PeerNodes
    /// Store work that reads leave to a background task.
    let maintenance = MaintenanceQueue()
    let recentPurges = RecentPurges()
    /// Digests that clients have requested.
    let digests = DigestRegistry()
    let wallClock: any WallClock
    /// The time since the start of the service; it never decreases.
    let uptime: @Sendable () -> Duration
    let random: any RandomSource
    let logger: Logger
    /// The name of this process in `CDN-Loop` (RFC 8586). It is unique, so that several Larder instances can be
    /// chained.
    let loopName: String
}
