import CacheCore
import CacheStore
import CacheTracing
import Logging

/// The shared services that an open asset, its fills and its reads work with. Components that need a few of them get
/// these alone.
struct EngineContext: Sendable {
    let store: Store
    let commits: CommitQueue
    /// The upstreams of all origins.
    let upstreams: Upstreams
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
    let openAssets: OpenAssets
    /// Stored error statuses of upstreams.
    let refusals: NegativeCache
    /// All fills in progress, for the management API.
    let fillRegistry: FillRegistry
    /// The other nodes of the fleet.
    let peers: PeerNodes
    /// Store work that reads leave to a background task.
    let maintenance = MaintenanceQueue()
    let recentPurges = RecentPurges()
    /// The points of assets that jobs wait for.
    let readPoints = ReadPoints()
    /// Digests that clients have requested.
    let digests = DigestRegistry()
    let wallClock: any WallClock
    /// The time since the start of the service; it never decreases.
    let uptime: @Sendable () -> Duration
    let random: any RandomSource
    let logger: Logger
}
