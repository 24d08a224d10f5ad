package import CacheCore
package import CacheStore
package import Logging
import Synchronization

/// The cache: opens assets for readers, and answers for everything administrators ask of it.
package final class AssetCache: Sendable {
    /// What the cache is built from.
    package struct Doors: Sendable {
        package var store: Store
        package var upstream: any Upstream
        package var clock: any Clock<Duration>
        package var wallClock: any WallClock
        package var chance: any Chance
        package var logger: Logger

        package init(
            store: Store, upstream: any Upstream, clock: any Clock<Duration>, wallClock: any WallClock,
            chance: any Chance, logger: Logger
        ) {
            self.store = store
            self.upstream = upstream
            self.clock = clock
            self.wallClock = wallClock
            self.chance = chance
            self.logger = logger
        }
    }

    /// What an administrator configures.
    package struct Settings: Sendable {
        /// The policy of a store that has none yet.
        package var policy: PolicySettings
        /// For reads of absolute URLs.
        package var absolute: OriginSettings
        package var allowedHosts: HostPatterns
        /// Origins that the configuration mounts; they replace those of the same name.
        package var origins: [Origin]
        package var diskThreads: Int
        package var jobConcurrency: Int
        package var scrub: ScrubSchedule
        /// Where the origins' files of credentials lie; nil: no origin may name one.
        package var credentialsDirectory: String?
        /// Where the files lie that are answered in place of failures; nil: no origin may name one.
        package var fallbackDirectory: String?
        /// What a gigabyte (10^9 bytes) from upstream costs, in whatever currency; nil: nobody says.
        package var pricePerGigabyte: Double?
        /// While so many transfers queue for readers, what must be fetched is refused.
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
    let targets = TargetMemo()
    let evictor: Evictor
    let purges = PurgeBook()
    let keeper: SegmentKeeper
    let prefetch: PrefetchQueue
    let scrubber: Scrubber
    let recorder = StatsRecorder()
    let clock: any Clock<Duration>
    let startedAt: Timestamp
    let settings: Settings
    let policyState: Mutex<RevisedPolicy>
    let admission = Mutex(AdmissionFilter())
    /// When old assets were last looked for; nil: not yet.
    let expiredAt = Mutex<Duration?>(nil)
    let lastCounts = Mutex(CatalogCounts())
    let storeIsMissing = Atomic(false)
    private let phase = Mutex(Readiness.starting)

    package init(doors: Doors, settings: Settings) {
        let uptime = doors.clock.stopwatch()
        let openAssets = OpenAssets()
        let space = Space(settings: settings.policy)
        let commits = CommitQueue(store: doors.store) { file, lost in
            for asset in openAssets.acquireAll(file.asset) { asset.lost(lost, of: file) }
        } spoiled: { file, runs in
            for asset in openAssets.acquireAll(file.asset) { asset.spoiled(runs, of: file) }
        } freed: { file, bytes in
            for asset in openAssets.acquireAll(file.asset) { asset.freed(bytes, of: file) }
            space.used(changedBy: -bytes)
        }
        let diskThreads = DiskThreads(threads: settings.diskThreads)
        context = EngineContext(
            store: doors.store, commits: commits, upstream: doors.upstream, space: space,
            evictionLog: EvictionLog(catalog: doors.store.catalog, wallClock: doors.wallClock),
            counters: CacheCounters(), readLog: ReadLog(wallClock: doors.wallClock), diskThreads: diskThreads,
            credentials: CredentialShelf(
                store: doors.store, threads: diskThreads, directory: settings.credentialsDirectory,
                logger: doors.logger), openAssets: openAssets, refusals: RefusalShelf(), fillBook: FillBook(),
            health: OriginHealth(uptime: uptime, chance: doors.chance, logger: doors.logger),
            wallClock: doors.wallClock, uptime: uptime, chance: doors.chance, logger: doors.logger,
            loopName: "larder-" + doors.chance.identifier().prefix(8))
        origins = OriginTable(absolute: settings.absolute, allowedHosts: settings.allowedHosts)
        resolver = AssetResolver(origins: origins, upstream: doors.upstream, catalog: doors.store.catalog)
        keeper = SegmentKeeper(
            space: space, commits: commits, catalog: doors.store.catalog, uptime: uptime)
        evictor = Evictor(context: context, resolver: resolver)
        prefetch = PrefetchQueue(
            catalog: doors.store.catalog, claims: PrefetchClaims(space: space, uptime: uptime),
            concurrency: settings.jobConcurrency, clock: doors.clock,
            wallClock: doors.wallClock, logger: doors.logger)
        scrubber = Scrubber(
            context: context, evictor: evictor, schedule: settings.scrub)
        clock = doors.clock
        startedAt = doors.wallClock.now()
        self.settings = settings
        policyState = Mutex(RevisedPolicy(settings: settings.policy, revision: 0))
    }

    /// Why the store began without a byte; nil where it did not.
    package var catalogLoss: CatalogLoss? { context.store.loss }
    /// Whether the catalog was found damaged since then.
    package var catalogIsDamaged: Bool { context.store.isDamaged }

    /// Whether somebody has removed the data directory: what is not on disk cannot be read until the next start.
    package var storeIsGone: Bool { storeIsMissing.load(ordering: .relaxed) }

    /// What this process calls itself in `CDN-Loop` (RFC 8586).
    package var loopName: String { context.loopName }

    package var readiness: Readiness { phase.withLock { $0 } }

    func enter(_ readiness: Readiness) { phase.withLock { $0 = readiness } }

    /// Whether content of the reference needs a token.
    package func access(for reference: AssetReference) -> OriginSettings.Access {
        guard case .mounted(let name, _, nil) = reference else { return .token }
        return origins[name]?.origin.settings.effectiveAccess ?? .token
    }
}

/// How far the service has come.
package enum Readiness: String, Sendable {
    case starting, ready, draining
}

package struct ReadOptions: Sendable {
    /// To the first byte; nil: the origin's own limit.
    package var timeout: Duration?

    package init(timeout: Duration? = nil) { self.timeout = timeout }
}

/// A policy with the number of its version.
package struct RevisedPolicy: Sendable {
    package var settings: PolicySettings
    package var revision: Int64
}
