package import CacheCore
package import CacheStore
package import Logging
import Synchronization

/// The cache engine: opens assets for readers and performs the operations of the management API.
package final class AssetCache: Sendable {
    /// The parts that the cache is built from.
    package struct Dependencies: Sendable {
        package var store: Store
        package var upstream: any Upstream
        package var clock: any Clock<Duration>
        package var wallClock: any WallClock
        package var random: any RandomSource
        package var logger: Logger

        package init(
            store: Store, upstream: any Upstream, clock: any Clock<Duration>, wallClock: any WallClock,
            random: any RandomSource, logger: Logger
        ) {
            self.store = store
            self.upstream = upstream
            self.clock = clock
            self.wallClock = wallClock
            self.random = random
            self.logger = logger
        }
    }

    /// The configuration of the cache.
    package struct Settings: Sendable {
        /// The policy of a store that has none yet.
        package var policy: PolicySettings
        /// The settings for reads of absolute URLs.
        package var absolute: OriginSettings
        /// The hosts that absolute URLs may name.
        package var allowedHosts: HostPatterns
        /// The origins of the configuration; they replace stored origins of the same name.
        package var origins: [Origin]
        /// The number of threads for blocking file operations.
        package var diskThreads: Int
        /// The maximum number of prefetch items in progress.
        package var jobConcurrency: Int
        package var scrub: ScrubSchedule
        /// The directory of the origins' credentials files; nil: no origin may name one.
        package var credentialsDirectory: String?
        /// The directory of the fallback files; nil: no origin may name one.
        package var fallbackDirectory: String?
        /// The price of a gigabyte (10^9 bytes) from the upstream, in any currency; nil: unknown.
        package var pricePerGigabyte: Double?
        /// The number of transfers queued for readers at which reads that need a fill are rejected.
        package var maxQueuedFills: Int

        package init(
            policy: PolicySettings, absolute: OriginSettings, allowedHosts: HostPatterns, origins: [Origin],
            diskThreads: Int = 4, jobConcurrency: Int = 16, scrub: ScrubSchedule = ScrubSchedule(),
            credentialsDirectory: String? = nil, fallbackDirectory: String? = nil, pricePerGigabyte: Double? = nil,
            maxQueuedFills: Int = 4096
        ) {
            self.policy = policy
            self.absolute = absolute
            self.allowedHosts = allowedHosts
            self.origins = origins
            self.diskThreads = diskThreads
            self.jobConcurrency = jobConcurrency
            self.scrub = scrub
            self.credentialsDirectory = credentialsDirectory
            self.fallbackDirectory = fallbackDirectory
            self.pricePerGigabyte = pricePerGigabyte
            self.maxQueuedFills = maxQueuedFills
        }
    }

    let context: EngineContext
    let resolver: AssetResolver
    let origins: OriginTable
    /// Resolved targets of mounted references.
    let targets = ResolvedTargetCache()
    let evictor: Evictor
    /// The plans of purge dry runs.
    let purges = PurgePlanRegistry()
    /// Saves the eviction state.
    let stateWriter: EvictionStateWriter
    /// The queue of prefetch jobs.
    let prefetch: PrefetchQueue
    let scrubber: Scrubber
    /// The history of statistics.
    let recorder = StatsRecorder()
    let clock: any Clock<Duration>
    let startedAt: Timestamp
    let settings: Settings
    /// Guards the policy in force.
    let policyState: Mutex<RevisedPolicy>
    /// Guards the use counts of assets that are not stored.
    let admission = Mutex(AdmissionFilter())
    /// Guards the uptime of the last search for expired assets; nil: none yet.
    let expiredAt = Mutex<Duration?>(nil)
    /// Guards the catalog's counts of the last statistics.
    let lastCounts = Mutex(CatalogCounts())
    /// Whether the data directory was missing at the last check.
    let storeIsMissing = Atomic(false)
    /// Guards the readiness.
    private let phase = Mutex(Readiness.starting)

    /// Creates the cache of an open store; `prepare` and `run` must follow.
    package init(dependencies: Dependencies, settings: Settings) {
        let uptime = dependencies.clock.stopwatch()
        let openAssets = OpenAssets()
        let space = SpaceReservations(settings: settings.policy)
        // The commit queue reports losses, damage and late punches of a file to every open asset of that ID. Each asset
        // releases its own hold.
        let commits = CommitQueue(store: dependencies.store, uptime: uptime) { file, lost in
            for asset in openAssets.acquireAll(file.asset) { asset.lost(lost, of: file) }
        } spoiled: { file, runs in
            for asset in openAssets.acquireAll(file.asset) { asset.spoiled(runs, of: file) }
        } freed: { file, bytes in
            for asset in openAssets.acquireAll(file.asset) { asset.freed(bytes, of: file) }
            space.used(changedBy: -bytes)
        }
        let diskThreads = DiskThreads(threads: settings.diskThreads)
        context = EngineContext(
            store: dependencies.store, commits: commits, upstream: dependencies.upstream, space: space,
            evictionLog: EvictionLog(catalog: dependencies.store.catalog, wallClock: dependencies.wallClock),
            counters: CacheCounters(), traceRecorder: AccessTraceRecorder(wallClock: dependencies.wallClock),
            diskThreads: diskThreads,
            credentials: CredentialsFileCache(
                store: dependencies.store, threads: diskThreads, directory: settings.credentialsDirectory,
                logger: dependencies.logger), openAssets: openAssets, refusals: NegativeCache(),
            fillRegistry: FillRegistry(),
            health: OriginHealth(uptime: uptime, random: dependencies.random, logger: dependencies.logger),
            wallClock: dependencies.wallClock, uptime: uptime, random: dependencies.random, logger: dependencies.logger,
            loopName: "larder-" + dependencies.random.identifier().prefix(8))
        origins = OriginTable(absolute: settings.absolute, allowedHosts: settings.allowedHosts)
        resolver = AssetResolver(origins: origins, upstream: dependencies.upstream, catalog: dependencies.store.catalog)
        stateWriter = EvictionStateWriter(
            space: space, commits: commits, catalog: dependencies.store.catalog, uptime: uptime)
        evictor = Evictor(context: context, resolver: resolver)
        prefetch = PrefetchQueue(
            catalog: dependencies.store.catalog, claims: PrefetchClaims(space: space, uptime: uptime),
            concurrency: settings.jobConcurrency, clock: dependencies.clock,
            wallClock: dependencies.wallClock, logger: dependencies.logger)
        scrubber = Scrubber(
            context: context, evictor: evictor, schedule: settings.scrub)
        clock = dependencies.clock
        startedAt = dependencies.wallClock.now()
        self.settings = settings
        policyState = Mutex(RevisedPolicy(settings: settings.policy, revision: 0))
    }

    /// The reason why the store was recreated empty; nil if it was not.
    package var catalogLoss: CatalogReset? { context.store.loss }
    /// Whether damage of the catalog was found since the start.
    package var catalogIsDamaged: Bool { context.store.isDamaged }

    /// Whether the data directory was removed: bytes cannot be read from disk until the next start.
    package var storeIsGone: Bool { storeIsMissing.load(ordering: .relaxed) }

    /// The name of this process in `CDN-Loop` (RFC 8586).
    package var loopName: String { context.loopName }

    package var readiness: Readiness { phase.withLock { $0 } }

    /// Sets the readiness.
    func enter(_ readiness: Readiness) { phase.withLock { $0 = readiness } }

    /// Whether content of the reference requires a token.
    package func access(for reference: AssetReference) -> OriginSettings.Access {
        guard case .mounted(let name, _, nil) = reference else { return .token }
        return origins[name]?.origin.settings.effectiveAccess ?? .token
    }
}

/// The lifecycle state of the service.
package enum Readiness: String, Sendable {
    case starting, ready, draining
}

/// Options of one read.
package struct ReadOptions: Sendable {
    /// The limit on the time to the first byte; nil: the origin's own limit.
    package var timeout: Duration?

    package init(timeout: Duration? = nil) { self.timeout = timeout }
}

/// A policy with its revision.
package struct RevisedPolicy: Sendable {
    package var settings: PolicySettings
    /// Incremented by each change; the `ETag` in the management API. 0: not stored yet.
    package var revision: Int64
}
