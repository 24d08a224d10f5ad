package import CacheCore
package import CacheStore
package import CacheTracing
package import Logging
import Synchronization

/// The cache engine: its parts for readers and for the management API, and their background tasks.
package final class AssetCache: Sendable {
    /// The parts that the cache is built from.
    package struct Dependencies: Sendable {
        package var store: Store
        package var upstream: any Upstream
        /// The client for requests that wait behind no content, such as those to etcd.
        package var services: any Upstream
        /// The client for requests to webhooks; it guards addresses as that of content.
        package var receivers: any Upstream
        package var clock: any Clock<Duration>
        /// The time of day for ages and records. It should not jump.
        package var wallClock: any WallClock
        /// The time of day as the system shows it, for instants that clients name.
        package var civilClock: any WallClock
        package var random: any RandomSource
        package var logger: Logger
        package var events: EventLog
        package var tracer: Tracer
        /// The environment of the process, for the credentials of accounts.
        package var environment: [String: String]

        package init(
            store: Store, upstream: any Upstream, services: (any Upstream)? = nil, receivers: (any Upstream)? = nil,
            clock: any Clock<Duration>, wallClock: any WallClock, civilClock: (any WallClock)? = nil,
            random: any RandomSource, logger: Logger,
            events: EventLog? = nil,
            tracer: Tracer = .disabled, environment: [String: String] = [:]
        ) {
            self.store = store
            self.upstream = upstream
            self.services = services ?? upstream
            self.receivers = receivers ?? upstream
            self.clock = clock
            self.wallClock = wallClock
            self.civilClock = civilClock ?? wallClock
            self.random = random
            self.logger = logger
            self.events = events ?? EventLog(wallClock: wallClock)
            self.tracer = tracer
            self.environment = environment
        }
    }

    /// Serves content.
    package let reader: ContentReader
    /// The digest of the cache for other nodes.
    package let ownDigest: OwnDigest
    package let prober: Prober
    package let media: MediaInspector
    package let assets: AssetAdministration
    package let evictions: EvictionAdministration
    package let simulator: PolicySimulator
    package let jobs: PrefetchJobs
    package let schedules: JobSchedules
    package let configuration: CacheConfiguration
    package let statistics: CacheStatistics
    package let scrubber: Scrubber
    package let encryption: EncryptionAdministration
    /// This node's part in a fleet with etcd; nil: there is none.
    package let fleet: FleetMember?
    /// Delivers events to the webhooks of the configuration.
    package let webhooks: Webhooks
    /// The recent changes of state and warnings.
    package var events: EventLog { context.events }
    /// Lists the files of upstreams.
    package var lister: UpstreamLister {
        UpstreamLister(of: context, resolver: resolver, settings: media.settings, clock: clock)
    }
    /// Starts the spans of requests.
    package var tracer: Tracer { context.tracer }
    /// The fills in progress.
    package var fills: FillRegistry { context.fillRegistry }

    let context: EngineContext
    let resolver: AssetResolver
    let evictor: Evictor
    /// Saves the eviction state.
    let stateWriter: EvictionStateWriter
    /// Whether a search for obsolete assets runs, and whether it is to be repeated.
    private let renewal = OrderedMutex(.leaf, (isRunning: false, isDue: false))
    let clock: any Clock<Duration>
    /// Guards the uptime of the last search for expired assets; nil: none yet.
    private let expiredAt = OrderedMutex<Duration?>(.leaf, nil)
    /// Whether the data directory was missing at the last check.
    private let storeIsMissing = Atomic(false)
    /// The usage that the catalog stated at the start, in bytes.
    private let estimate = Atomic<Int64>(0)
    /// Guards the state of the disk, as events report it.
    let diskWatch = OrderedMutex(.leaf, DiskWatch())
    /// Guards the credentials, as events report them.
    let credentialsWatch = OrderedMutex(.leaf, CredentialsWatch())
    /// Guards the readiness.
    let phase = OrderedMutex(.leaf, Readiness.starting)
    /// Has an element once the store is to be handed over.
    let handOvers = AsyncStream<Void>.makeStream()

    /// Creates the cache of an open store; `prepare` and `run` must follow.
    package init(dependencies: Dependencies, settings: Settings) {
        let uptime = dependencies.clock.stopwatch()
        let openAssets = OpenAssets()
        let space = SpaceReservations(settings: settings.policy)
        let upstreamLatencies = UpstreamLatencies()
        let commits = Self.commits(
            to: dependencies.store, openAssets: openAssets, space: space, latencies: upstreamLatencies, uptime: uptime)
        let diskThreads = DiskThreads(threads: settings.diskThreads)
        let upstreams = Upstreams(dependencies, settings, threads: diskThreads, uptime: uptime)
        context = EngineContext(
            store: dependencies.store, commits: commits, upstreams: upstreams, space: space,
            evictionLog: EvictionLog(
                catalog: dependencies.store.catalog, wallClock: dependencies.wallClock, events: dependencies.events),
            counters: CacheCounters(), requestLatencies: RequestLatencies(wallClock: dependencies.wallClock),
            upstreamLatencies: upstreamLatencies, events: dependencies.events, tracer: dependencies.tracer,
            traceRecorder: AccessTraceRecorder(wallClock: dependencies.wallClock), diskThreads: diskThreads,
            openAssets: openAssets, refusals: NegativeCache(),
            fillRegistry: FillRegistry(events: dependencies.events, uptime: uptime),
            peers: PeerNodes(
                upstream: upstreams.client, loopName: upstreams.loopName, uptime: uptime,
                wallClock: dependencies.wallClock, logger: dependencies.logger),
            wallClock: dependencies.wallClock, uptime: uptime, random: dependencies.random, logger: dependencies.logger)
        ownDigest = OwnDigest(context: context)
        let (live, catalog) = (LiveCacheSettings(settings), dependencies.store.catalog)
        let origins = OriginTable(absolute: settings.absolute, allowedHosts: settings.allowedHosts)
        resolver = AssetResolver(origins: origins, context: context)
        stateWriter = EvictionStateWriter(space: space, commits: commits, catalog: catalog, uptime: uptime)
        evictor = Evictor(context: context, resolver: resolver)
        scrubber = Scrubber(context: context, evictor: evictor, schedule: settings.scrub)
        configuration = CacheConfiguration(context: context, origins: origins, settings: live)
        encryption = EncryptionAdministration(
            store: dependencies.store, commits: commits, origins: origins, wallClock: dependencies.wallClock,
            logger: dependencies.logger)
        (clock, webhooks) = (dependencies.clock, Webhooks(dependencies, settings.webhooks, uptime: uptime))
        reader = ContentReader(resolver: resolver, configuration: configuration, settings: live, clock: clock)
        prober = Prober(of: context, resolver: resolver, clock: dependencies.clock)
        media = MediaInspector(of: context, resolver: resolver, settings: live)
        evictions = EvictionAdministration(
            context: context, resolver: resolver, evictor: evictor, encryption: encryption, clock: clock)
        simulator = PolicySimulator(
            space: space, traceRecorder: context.traceRecorder, configuration: configuration, settings: live,
            wallClock: dependencies.wallClock)
        let prefetch = PrefetchQueue(
            store: dependencies.store, claims: PrefetchClaims(space: space, uptime: uptime), clock: dependencies.clock,
            wallClock: dependencies.wallClock, civilClock: dependencies.civilClock, events: dependencies.events,
            latencies: upstreamLatencies, tracer: dependencies.tracer, settings: live, logger: dependencies.logger)
        assets = AssetAdministration(
            context: context, resolver: resolver, evictor: evictor, configuration: configuration, prefetch: prefetch,
            clock: dependencies.clock, listWait: settings.listWait)
        jobs = PrefetchJobs(
            prefetch: prefetch, catalog: catalog, commits: commits, resolver: resolver, configuration: configuration,
            random: dependencies.random)
        fleet = FleetMember(
            settings.fleet, services: dependencies.services, context: context, configuration: configuration,
            evictions: evictions, prefetch: prefetch)
        schedules = JobSchedules(jobs, fleet: fleet, of: context)
        statistics = CacheStatistics(
            context: context, origins: origins, scrubber: scrubber, encryption: encryption, prefetch: prefetch,
            schedules: schedules, webhooks: webhooks, settings: live)
    }

    /// The commit queue. It reports losses, damage and late punches of a file to every open asset of that ID. Each asset
    /// releases its own hold.
    private static func commits(
        to store: Store, openAssets: OpenAssets, space: SpaceReservations, latencies: UpstreamLatencies,
        uptime: @escaping @Sendable () -> Duration
    ) -> CommitQueue {
        CommitQueue(store: store, uptime: uptime) { file, lost in
            for asset in openAssets.acquireAll(file.asset) { asset.lost(lost, of: file) }
        } spoiled: { file, runs in
            for asset in openAssets.acquireAll(file.asset) { asset.spoiled(runs, of: file) }
        } freed: { file, bytes in
            for asset in openAssets.acquireAll(file.asset) { asset.freed(bytes, of: file) }
            space.used(changedBy: -bytes)
        } purged: {
            space.used(changedBy: -$0)
        } committed: {
            latencies.committed(in: $0)
        }
    }

    /// The reason why the store was recreated empty; nil if it was not.
    package var catalogLoss: CatalogReset? { context.store.loss }
    /// Whether damage of the catalog was found since the start.
    package var catalogIsDamaged: Bool { context.store.isDamaged }

    /// Whether the data directory was removed: bytes cannot be read from disk until the next start.
    package var storeIsGone: Bool { storeIsMissing.load(ordering: .relaxed) }

    package var readiness: Readiness { phase.withLock { $0 } }

    /// Loads the policy and the origins from the catalog; call it once, before the first request is served.
    package func prepare() async throws(CacheError) {
        try await configuration.loadPolicy()
        try await configuration.loadTokens()
        let catalog = context.store.catalog
        if let form = try await catalog.segmentForm() { context.space.begin(as: form) }
        context.space.with { $0.pinned.formUnion(catalog.pinned) }  // first, or their segments could be evicted
        try await configuration.loadOrigins()
        await logged("credentials could not be read", rereadCredentials)
        // Until the files are counted: otherwise fills would get the space of an empty store.
        if let bytes = await catalog.estimatedBytes() {
            context.space.with { $0.usedBytes = bytes }
            estimate.store(bytes, ordering: .relaxed)
        }
        try evictor.measureDisk()
        try await fleet?.prepare()
        phase.withLock { $0 = .ready }
        fleet?.changed(.ready)
        context.events.publish(.readiness(isReady: true, reasons: []))
    }

    /// Runs the background tasks of the cache until cancellation or ``handOver()``, then makes a last commit. After a
    /// hand-over it returns at the cancellation: until then readers get stored bytes.
    package func run() async {
        let isLeaving = await withTaskGroup { group in
            group.addTask {
                await self.work()
                return false
            }
            group.addTask { await self.handOvers.stream.first { _ in true } != nil }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
        // Shutdown: the state in memory is stored, then committed.
        let isQuiet = isLeaving ? await endFills() : true
        await logged("the statistics of the last minute could not be stored", statistics.recordMinute)
        await logged("the eviction state could not be stored", stateWriter.keep)
        await logged("the eviction log could not be stored", context.evictionLog.write)
        await logged("events for webhooks could not be stored", webhooks.end)
        let isCommitted = await logged("the last commit failed", context.commits.flush)
        if isLeaving { await leave(withStore: isQuiet && isCommitted) }
        context.openAssets.closeAll()
        await context.diskThreads.shutdown()
    }

    /// The background tasks, until cancellation.
    private func work() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.context.commits.run(clock: self.clock) }
            group.addTask {
                await self.untilDone(
                    "the reconciliation of files and catalog failed and will be retried", self.reconcile)
                await withDiscardingTaskGroup { group in
                    group.addTask { await self.removePurged() }
                    group.addTask { await self.followForms() }
                    for await _ in self.context.space.recounts {
                        await self.logged("segments could not be counted", self.countSegments)
                    }
                }
            }
            group.addTask { await self.encryption.run(clock: self.clock) }
            group.addTask { await self.context.upstreams.accounts.run() }
            // Reads of clients have the default priority.
            group.addTask(priority: .utility) { await self.jobs.prefetch.run(in: self) }
            group.addTask(priority: .utility) { await self.schedules.run(clock: self.clock) }
            group.addTask {
                for await _ in self.context.space.shortage {
                    if self.context.space.excess().bytes > 0 {
                        await self.logged("the eviction state could not be stored", self.stateWriter.keepBeforeEviction)
                        await self.logged("expired assets could not be removed", self.expireBeforeEviction)
                    }
                    await self.logged("eviction failed", self.evictor.makeRoom)
                }
            }
            if let fleet = self.fleet { group.addTask { await fleet.run(clock: self.clock) } }
            group.addTask(priority: .utility) { await self.webhooks.run() }
            group.addTask { await self.every(.seconds(5), self.checkCredentials) }
            group.addTask { await self.peers.renewDigests(clock: self.clock) }
            group.addTask { await self.runMaintenance() }
            group.addTask { await self.scrubber.run(clock: self.clock) }
            group.addTask(priority: .utility) { await self.computeDigests() }
            group.addTask { await self.every(.seconds(1), self.tidy) }
            group.addTask { await self.sampleEachSecond() }
            group.addTask { await self.every(.seconds(2), self.rereadCredentials) }
            group.addTask {
                await self.every(.seconds(15)) { () async throws(CacheError) in
                    try await self.stateWriter.keep()
                    try await self.context.evictionLog.write()
                }
            }
            group.addTask { await self.every(.seconds(60), self.expire) }
            group.addTask {
                await self.every(.seconds(60)) { () async throws(CacheError) in try await self.removeEmptyAssets() }
            }
            group.addTask { await self.every(.seconds(60), self.statistics.recordMinute) }
        }
    }

    /// Starts the shutdown: readiness turns false, and reads in progress continue.
    package func drain() {
        phase.withLock { $0 = .draining }
        fleet?.changed(.draining)
        context.events.publish(.readiness(isReady: false, reasons: ["The service is shutting down."]))
    }

    // MARK: Parts

    /// Runs a task until it succeeds, with a delay between the attempts that doubles from 1 s to 60 s.
    private func untilDone(_ message: Logger.Message, _ body: () async throws(CacheError) -> Void) async {
        var pause = Duration.seconds(1)
        while true {
            if await logged(message, body) { return }
            // Cancelled: the next start completes the work.
            guard (try? await clock.sleep(for: pause)) != nil else { return }
            pause = min(pause * 2, .seconds(60))
        }
    }

    /// Removes the assets that purges have selected, also those of earlier runs, until cancellation.
    private func removePurged() async {
        for await _ in evictions.background.work {
            await untilDone(
                "purged assets could not be removed; this will be retried", evictions.background.removeSelected)
        }
    }

    /// Reconciles files and catalog after a restart, and restores the usage and the eviction state of the segments.
    private func reconcile() async throws(CacheError) {
        let found = try await context.store.reconcile()
        // Growth of old files since the start may be counted twice: an overestimate is safe.
        let before = estimate.load(ordering: .relaxed)
        context.space.with { $0.usedBytes = found.usedDiskBytes + max(0, $0.usedBytes - before) }
        if let form = try await context.store.catalog.segmentForm() { try await stateWriter.restore(form) }
        try await countSegments()
        stateWriter.begin()
        context.space.adopt(configuration.policy.settings)
        context.space.counted()
    }

    /// Tells the space ledger which bytes of each segment are on disk, asset by asset.
    private func countSegments() async throws(CacheError) {
        try await context.commits.flush()
        let (context, removals) = (context, context.openAssets.removals)
        let changing = OrderedMutex<[AssetID]>(.leaf, [])
        try await context.store.catalog.eachAsset { stored in
            if let open = context.openAssets[stored.asset], open.count(lastUse: stored.lastAccessAt) { return }
            let isCounted = context.space.with { ledger in
                // A thread that opens or removes the asset after this check updates the ledger later.
                let isAsStored = context.openAssets.isClosed(stored.asset, since: removals)
                if isAsStored {
                    ledger.count(stored.extents, of: stored.asset, from: stored.owners, lastUse: stored.lastAccessAt)
                }
                return isAsStored
            }
            if !isCounted { changing.withLock { $0.append(stored.asset) } }
        }
        // Assets that were opened or removed during the scan are counted from their open state.
        for id in changing.withLock({ $0 }) {
            guard let asset = try await evictor.openKnown(id) else { continue }
            defer { context.openAssets.release(asset) }
            asset.count(lastUse: asset.record?.lastAccessAt ?? context.wallClock.now())
        }
        context.space.notify()
    }

    /// Reads changed credentials files of the origins; an error in one of them is logged.
    private func rereadCredentials() async throws(CacheError) {
        let origins = resolver.origins
        let files = (origins.all.map(\.origin.settings) + [origins.absolute]).compactMap(\.credentialsFile)
        guard !files.isEmpty else { return }
        try await context.upstreams.credentials.reread(Set(files))
    }

    /// Purges or converts obsolete assets now, and after each change of an origin's form, until cancellation.
    private func followForms() async {
        await withDiscardingTaskGroup { group in
            await renewObsolete()
            for await _ in resolver.origins.formChanges {
                await renewObsolete()
                // A read that began before the change can store an asset up to its time limit.
                group.addTask {
                    guard (try? await self.clock.sleep(for: .seconds(60))) != nil else { return }  // cancelled
                    await self.renewObsolete()
                }
            }
        }
    }

    /// One call at a time does the work: during it, a further call only has it repeated. After an error it is repeated
    /// once a minute.
    private func renewObsolete() async {
        let isFirst = renewal.withLock { state in
            defer { state = (isRunning: true, isDue: state.isRunning) }
            return !state.isRunning
        }
        guard isFirst else { return }
        let obsolete = ObsoleteAssets(resolver: resolver, evictor: evictor, clock: clock)
        var isDone = false
        repeat {
            renewal.withLock { $0.isDue = false }
            isDone = await logged("obsolete assets could not be purged or converted", obsolete.renew)
            if !isDone, (try? await clock.sleep(for: .seconds(60))) == nil { break }  // cancelled
        } while renewal.withLock { state in
            state.isRunning = state.isDue || !isDone
            return state.isRunning
        }
    }

    /// Performs queued maintenance until cancellation.
    private func runMaintenance() async {
        for await work in context.maintenance.work {
            await logged("damaged bytes could not be removed from the disk") { () async throws(CacheError) in
                try await self.perform(to: work)
            }
        }
    }

    /// Computes the digests of large assets that clients have requested, one at a time, until cancellation.
    private func computeDigests() async {
        for await order in context.digests.orders {
            defer { context.digests.finished(order) }
            // An asset that cannot be opened has no digest; its reads report the error.
            guard let asset = try? await evictor.openKnown(order.asset) else { continue }
            _ = await asset.representationDigest(order.algorithm, isForeground: false)
            context.openAssets.release(asset)
        }
    }

    /// Performs one task. Orphaned bytes are removed after the commit that releases them (crash rule), and the asset's
    /// hold is released in any case.
    private func perform(to work: MaintenanceQueue.Work) async throws(CacheError) {
        switch work {
        case .orphaned(let asset, let file, let runs):
            defer {
                asset.finishEviction(runs, of: file)
                context.openAssets.release(asset)
            }
            context.commits.cut(file, runs)
            try await context.commits.flush()
        case .playlist(let asset):
            defer { context.openAssets.release(asset) }
            await media.readLifetime(of: asset)
        case .checked(let file):
            try await context.store.catalog.checked(file)
        }
    }

    /// Applies time limits of readers, closes assets that have been idle for long once their state is in the catalog,
    /// and checks the free space.
    private func tidy() async throws(CacheError) {
        applyTimeLimits()
        for asset in context.openAssets.detached + context.openAssets.all { await relieveMemory(of: asset) }
        guard try findsStore() else { return }
        try evictor.measureDisk()
        try checkDisk()
        context.space.notifyIfAwaited()
        if context.space.excess().bytes > 0 || context.space.with({ !$0.overdrafts.isEmpty }) { context.space.notify() }
        // The commit comes before the removal: an asset that is opened again is loaded from the catalog.
        let surplus = context.openAssets.idleSurplus()
        guard !surplus.isEmpty else { return }
        try await context.commits.flush()
        context.openAssets.close(surplus)
    }

    /// Releases spilled bytes that no reader is about to send.
    private func relieveMemory(of asset: OpenAsset) async {
        guard let file = asset.look({ $0.isSpilled ? $0.file : nil }) else { return }
        guard file.name != nil, context.openAssets[asset.id] === asset else { return asset.relieveMemory(of: file) }
        await logged("spilled bytes could not be released") { () async throws(CacheError) in
            _ = try await self.evictor.drop(file.spilled.runs, of: asset.id, because: .freeDisk)
        }
    }

    /// Whether the data directory exists. Its disappearance is logged once, instead of an error every second.
    private func findsStore() throws(CacheError) -> Bool {
        let isMissing = try !context.store.isInPlace()
        let wasMissing = storeIsMissing.exchange(isMissing, ordering: .relaxed)
        if isMissing != wasMissing {
            let reasons = isMissing ? ["The data directory is missing."] : []
            context.events.publish(.readiness(isReady: !isMissing, reasons: reasons))
        }
        if isMissing, !wasMissing { context.logger.critical("the data directory is gone; start the service again") }
        return !isMissing
    }

    /// Removes assets that exceed `maxIdle` or `maxAge` of the policy.
    func expire() async throws(CacheError) {
        let policy = configuration.policy.settings
        let now = context.wallClock.now()
        let uptime = context.uptime()
        expiredAt.withLock { $0 = uptime }
        try await endPins(at: now)
        let expired = ExpiredAssets(catalog: context.store.catalog)
        try await expired.each(under: policy, at: now) { (page) async throws(CacheError) in
            // An asset in use is checked again in the next round.
            let idle = page.filter { !evictor.isInUse($0.id) }
            guard let reason = idle.first?.reason else { return }
            try await evictor.remove(
                idle.map(\.id), because: reason,
                telling: CacheError(.assetChanged, "The asset exceeded the maxIdle or maxAge of the policy."))
            context.counters.evicted(segments: idle.count, bytes: idle.reduce(0) { $0 + $1.cachedBytes })
        }
    }

    /// Removes the longest unread of the assets without bytes and without users. They have no segments, so that no
    /// capacity limits them; reads of empty files can create any number of them.
    func removeEmptyAssets(beyond limit: Int = 100_000, atOnce count: Int = 10_000) async throws(CacheError) {
        var last: [AssetID] = []
        while true {
            try await context.commits.flush()  // their rows state bytes that have arrived
            let surplus = try await context.store.catalog.emptyAssets(beyond: limit, atMost: count)
            // Assets that are in use, or that a purge is removing, stay for now.
            guard !surplus.isEmpty, surplus != last else { return }
            try await evictor.remove(
                surplus.filter { !evictor.isInUse($0) }, because: .idle,
                telling: CacheError(.assetChanged, "The asset had no bytes, and was one of too many."))
            last = surplus
        }
    }

    /// Removes expired assets before the policy selects victims; searches every five seconds at most.
    private func expireBeforeEviction() async throws(CacheError) {
        let policy = configuration.policy.settings
        guard policy.maxIdle != nil || policy.maxAge != nil,
            expiredAt.withLock({ $0 }).map({ context.uptime() - $0 >= .seconds(5) }) ?? true
        else { return }
        try await expire()
    }

    /// Unpins assets with a pin that has ended.
    private func endPins(at now: Timestamp) async throws(CacheError) {
        for id in try await context.store.catalog.endPins(at: now) {
            context.space.with { _ = $0.pinned.remove(id) }
            context.openAssets[id]?.change { state in
                state.record?.isPinned = false
                state.record?.pinnedUntil = nil
                return ((), [])
            }
        }
    }

    /// Ends a bucket of the live statistics at the end of each second of the wall clock.
    private func sampleEachSecond() async {
        repeat {
            for second in statistics.live.sample(at: context.wallClock.now()) {
                context.events.publish(.second(second))
            }
        } while (try? await clock.sleep(for: .milliseconds(1000 - context.wallClock.now().milliseconds % 1000))) != nil
    }

    /// Runs a task periodically until cancellation.
    func every(_ interval: Duration, _ body: () async throws(CacheError) -> Void) async {
        // Only cancellation interrupts the sleep; it ends the loop.
        while (try? await clock.sleep(for: interval)) != nil {
            await logged("a periodic task failed", body)
        }
    }

    /// Runs a task and logs its failure, except a cancellation. Returns whether it succeeded.
    @discardableResult
    func logged(_ message: Logger.Message, _ body: () async throws(CacheError) -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch  where error.code == .cancelled {
            // Shutdown: the next start completes the work.
        } catch {
            context.logger.error(message, metadata: ["error": "\(error)"])
        }
        return false
    }
}

/// The lifecycle state of the service.
package enum Readiness: String, Sendable {
    case starting, ready, draining
    /// The service serves, but routers are to send it no new requests: its node leaves the fleet.
    case leaving
}

/// Options of one read.
package struct ReadOptions: Sendable {
    /// The limit on the time to the first byte; nil: the origin's own limit.
    package var timeout: Duration?

    package init(timeout: Duration? = nil) { self.timeout = timeout }
}
