package import CacheCore
import CacheStore

/// Statistics at this moment, and the history of the last day.
package final class CacheStatistics: Sendable {
    private let context: EngineContext
    private let origins: OriginTable
    private let scrubber: Scrubber
    private let encryption: EncryptionAdministration
    private let prefetch: PrefetchQueue
    private let schedules: JobSchedules
    private let webhooks: Webhooks
    private let startedAt: Timestamp
    private let settings: LiveCacheSettings
    package let live: LiveStatistics
    /// The histograms of content requests.
    package var requestLatencies: RequestLatencies { context.requestLatencies }
    /// The histograms of upstream transfers, job items and commits.
    package var upstreamLatencies: UpstreamLatencies { context.upstreamLatencies }
    private let recorder = StatsRecorder()
    /// Guards the catalog's counts of the last statistics.
    private let lastCounts = OrderedMutex(.leaf, CatalogCounts())

    init(
        context: EngineContext, origins: OriginTable, scrubber: Scrubber, encryption: EncryptionAdministration,
        prefetch: PrefetchQueue, schedules: JobSchedules, webhooks: Webhooks, settings: LiveCacheSettings
    ) {
        self.context = context
        self.origins = origins
        self.scrubber = scrubber
        self.encryption = encryption
        self.prefetch = prefetch
        self.schedules = schedules
        self.webhooks = webhooks
        self.settings = settings
        startedAt = context.wallClock.now()
        live = LiveStatistics(
            counters: context.live, latencies: context.requestLatencies, fills: context.fillRegistry)
    }

    /// A snapshot of all statistics. If the catalog is corrupt, its counts are those of the last success; other
    /// catalog errors are thrown.
    package func snapshot() async throws(CacheError) -> StatsSnapshot {
        let counts = try await catalogCounts()
        // Without a data directory there is no disk to measure.
        let free = (try? context.store.freeDiskBytes()) ?? 0
        let mounted = origins.all.map(\.origin)
        let idle = Dictionary(uniqueKeysWithValues: mounted.map { ($0.name, TrafficFigures()) })
        let figures = context.counters.origins().merging(idle) { counted, _ in counted }.sorted { $0.key < $1.key }
        let circuits = mounted.filter { $0.settings.circuitBreaker != nil }
            .map { ($0.name, context.upstreams.health.circuits(of: $0)) }
        let (used, capacity, quotas) = context.space.with {
            ($0.usedBytes, $0.settings.capacityBytes, $0.quotaStandings)
        }
        let evictions = context.counters.evictions
        let accounts = mounted.compactMap { origin in
            origin.settings.auth.kind.map { (origin.name, context.upstreams.accounts.figures(of: origin.name, $0)) }
        }
        let now = context.wallClock.now()
        var integrity = context.counters.integrity
        integrity.damagedRows = context.store.damagedRowCount
        var snapshot = StatsSnapshot(
            startedAt: startedAt, uptime: now.since(startedAt),
            all: figures.reduce(into: TrafficFigures()) { $0.add($1.value) },
            origins: figures.map { (name: $0.key, figures: $0.value) },
            circuits: Dictionary(uniqueKeysWithValues: circuits),
            failingServers: context.upstreams.health.failingServers(),
            store: StatsSnapshot.StoreFigures(
                isDamaged: context.store.isDamaged, assets: Int64(counts.totals.assets),
                extents: Int64(counts.totals.extents), cachedBytes: counts.totals.cachedBytes, diskBytes: used,
                capacityBytes: capacity, freeDiskBytes: free, losses: context.commits.commitLag,
                quotas: quotas.sorted { $0.owner.place < $1.owner.place }),
            load: transferLoad,
            jobs: counts.jobs.mapValues { Int64($0) }, evictions: evictions.count,
            evictedBytes: evictions.bytes, integrity: integrity, scrub: scrubber.latest,
            pricePerGigabyte: settings.current.settings.pricePerGigabyte,
            requestLatencies: context.requestLatencies.snapshot,
            upstreamLatencies: context.upstreamLatencies.snapshot)
        snapshot.evictedYoungBytes = evictions.youngBytes
        snapshot.store.lockedFiles = Int64(encryption.missingKeyFiles)
        (snapshot.peers, snapshot.fleetLag) = (context.peers.figures, context.peers.lag)
        snapshot.jobsAtRisk = Int64(prefetch.look { $0.atRiskCount })
        snapshot.schedules = schedules.figures
        snapshot.webhooks = counts.webhooks
        snapshot.credentials = Dictionary(uniqueKeysWithValues: accounts)
        return snapshot
    }

    /// The counts of the catalog. If it is corrupt, the last counts.
    private func catalogCounts() async throws(CacheError) -> CatalogCounts {
        do throws(CacheError) {
            let catalog = context.store.catalog
            let counts = CatalogCounts(
                totals: try await catalog.totals(), jobs: try await catalog.jobCounts(),
                webhooks: try await webhooks.report())
            lastCounts.withLock { $0 = counts }
            return counts
        } catch  where error.code == .storageCorrupt {
            return lastCounts.withLock { $0 }
        }
    }

    /// The load of upstream transfers at this moment.
    package var transferLoad: TransferLoad { context.upstreams.client.load }

    /// The most read assets, in the given order.
    package func top(by order: TopOrder, limit: Int) -> [TopAsset] { context.counters.top(by: order, limit: limit) }

    /// The history of the last `window`, oldest first, in steps of at least a minute. A step without traffic has
    /// zeros. The last step includes counts that have not been written yet.
    package func history(window: Duration, step: Duration) async throws(CacheError) -> [HistoryStep] {
        let now = context.wallClock.now()
        let begin = now - window
        let stepMilliseconds = max(step, .seconds(60)).wholeMilliseconds
        let count = Int((window.wholeMilliseconds + stepMilliseconds - 1) / stepMilliseconds)
        var steps = (0..<count).map { index in
            HistoryStep(
                at: begin + .milliseconds(Int64(index) * stepMilliseconds), figures: TrafficFigures())
        }
        for minute in try await context.store.catalog.minutes(since: begin) {
            let index = Int((minute.at.milliseconds - begin.milliseconds) / stepMilliseconds)
            guard steps.indices.contains(index), let figures = TrafficFigures(json: minute.counters) else { continue }
            steps[index].figures.add(figures)
        }
        if !steps.isEmpty {
            for (_, figures) in recorder.pending(of: context.counters.origins()) {
                steps[count - 1].figures.add(figures)
            }
        }
        return steps
    }

    /// Writes the increase of the counters since the last call to the history, and removes minutes older than a day.
    func recordMinute() async throws(CacheError) {
        let now = recorder.instant(at: context.wallClock.now())
        let counted = context.counters.origins()
        let minutes = recorder.pending(of: counted).map { origin, increase in
            StatisticsMinute(at: now, origin: origin, counters: increase.json)
        }
        try await context.store.catalog.saveStatistics(minutes: minutes)
        recorder.wrote(counted)
        try await context.store.catalog.pruneMinutes(before: now - .seconds(86_400))
    }
}

/// Counts that the statistics take from the catalog.
private struct CatalogCounts: Sendable {
    var totals = CatalogTotals()
    var jobs: [JobState: Int] = [:]
    var webhooks: [WebhookReport] = []
}

extension QuotaOwner {
    /// The sort key: origins before tags, each by name.
    fileprivate var place: (Int, String) {
        switch self {
        case .origin(let name): (0, name)
        case .tag(let tag): (1, tag)
        }
    }
}
