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
        /// Where the origins' files of credentials lie; nil: no origin may name one.
        package var credentialsDirectory: String?
        /// Where the files lie that are answered in place of failures; nil: no origin may name one.
        package var fallbackDirectory: String?

        package init(
            policy: PolicySettings, absolute: OriginSettings, allowedHosts: HostPatterns, origins: [Origin],
            diskThreads: Int = 4, jobConcurrency: Int = 4, credentialsDirectory: String? = nil,
            fallbackDirectory: String? = nil
        ) {
            self.policy = policy
            self.absolute = absolute
            self.allowedHosts = allowedHosts
            self.origins = origins
            self.diskThreads = diskThreads
            self.jobConcurrency = jobConcurrency
            self.credentialsDirectory = credentialsDirectory
            self.fallbackDirectory = fallbackDirectory
        }
    }

    let context: EngineContext
    let resolver: AssetResolver
    let origins: OriginTable
    let evictor: Evictor
    let prefetch: PrefetchQueue
    let recorder = StatsRecorder()
    let clock: any Clock<Duration>
    let startedAt: Timestamp
    let settings: Settings
    let policyState: Mutex<RevisedPolicy>
    private let phase = Mutex(Readiness.starting)

    package init(doors: Doors, settings: Settings) {
        let openAssets = OpenAssets()
        let space = Space(settings: settings.policy)
        let commits = CommitQueue(store: doors.store) { file, lost in
            for asset in openAssets.acquireAll(file.asset) { asset.lost(lost, of: file) }
        }
        context = EngineContext(
            store: doors.store, commits: commits, upstream: doors.upstream, space: space, counters: CacheCounters(),
            diskThreads: DiskThreads(threads: settings.diskThreads), openAssets: openAssets,
            wallClock: doors.wallClock, chance: doors.chance, logger: doors.logger)
        origins = OriginTable(absolute: settings.absolute, allowedHosts: settings.allowedHosts)
        resolver = AssetResolver(origins: origins, upstream: doors.upstream, catalog: doors.store.catalog)
        evictor = Evictor(context: context, resolver: resolver)
        prefetch = PrefetchQueue(
            catalog: doors.store.catalog, concurrency: settings.jobConcurrency, clock: doors.clock,
            wallClock: doors.wallClock, logger: doors.logger)
        clock = doors.clock
        startedAt = doors.wallClock.now()
        self.settings = settings
        policyState = Mutex(RevisedPolicy(settings: settings.policy, revision: 0))
    }

    package var readiness: Readiness { phase.withLock { $0 } }

    func enter(_ readiness: Readiness) { phase.withLock { $0 = readiness } }

    /// Reads content: the plan of the answer, with its first byte at hand.
    ///
    /// Throws what the answer's status must tell; `.upstreamTimedOut(.read)` where the first byte took longer than
    /// `options.timeout`, or the origin's own limit.
    package func read(
        _ reference: AssetReference, request: ContentRequest, options: ReadOptions = ReadOptions()
    ) async throws(ReadFailure) -> ContentRead {
        let target: AssetTarget
        do { target = try await resolve(reference) } catch { throw ReadFailure(error) }
        do {
            return try await withDeadline(options.timeout ?? target.settings.readTimeout, .read, clock: clock) {
                [self] () async throws(CacheError) in try await begin(target, request)
            }
        } catch {
            context.counters.answered(.error, origin: target.originName)
            if error.code == .cancelled { context.counters.clientAborted(origin: target.originName) }
            throw ReadFailure(error)
        }
    }

    /// Whether content of the reference needs a token.
    package func access(for reference: AssetReference) -> OriginSettings.Access {
        guard case .mounted(let name, _, nil) = reference else { return .token }
        return origins[name]?.origin.settings.effectiveAccess ?? .token
    }

    /// Begins anew where the asset turns out to be another one before its first byte was sent.
    private func begin(_ target: AssetTarget, _ request: ContentRequest) async throws(CacheError) -> ContentRead {
        let began = context.wallClock.now()
        var tries = 3
        while true {
            let asset = try await open(target)
            do {
                return try await begin(asset, request, since: began)
            } catch  where error.code == .assetChanged && tries > 1 {
                tries -= 1
            }
        }
    }

    /// `began`: when the request came; what the upstream said since then needs no confirmation.
    private func begin(
        _ asset: OpenAsset, _ request: ContentRequest, since began: Timestamp
    ) async throws(CacheError) -> ContentRead {
        let before = asset.look { state in (isKnown: state.record != nil, isSettling: !state.fills.isEmpty) }
        let known = asset.record?.generation
        let isFresh = known.map { $0.isFresh(at: began) || $0.receivedAt >= began } ?? true
        let reader: FillLedger.ReaderID
        do {
            reader = try asset.join(
                opening: request.openingWindow, priority: .live, mustConfirm: !isFresh)
        } catch {
            context.openAssets.release(asset)
            throw error
        }
        do {
            _ = try await asset.settle(reader)
        } catch {
            asset.leave(reader)
            context.openAssets.release(asset)
            throw error
        }
        let read = plan(
            request, of: asset, for: reader, wasKnown: before.isKnown, joined: !before.isKnown && before.isSettling,
            wasFresh: isFresh)
        do {
            try await read.awaitFirstByte()
        } catch {
            read.abandon()
            throw error
        }
        return read
    }

    private func plan(
        _ request: ContentRequest, of asset: OpenAsset, for reader: FillLedger.ReaderID, wasKnown: Bool, joined: Bool,
        wasFresh: Bool
    ) -> ContentRead {
        let now = context.wallClock.now()
        let (record, status) = asset.look { ($0.record, $0.upstreamStatus) }
        let generation = record?.generation ?? Generation(receivedAt: now)
        let plan = ContentPlan.make(request, generation: generation, now: now, boundary: context.chance.identifier())
        let needed = plan.neededRanges
        let found = asset.look { $0.ledger.lookUp(needed) }
        let cached = wasKnown ? found.cached : ByteRangeSet()
        var outcome = ReadOutcome(requestClass: .miss)
        let wanted = needed.reduce(0) { $0 + $1.length }
        if !generation.isStorable {
            outcome.requestClass = .bypass
        } else if wasKnown, cached.byteCount == wanted || wanted == 0 {
            outcome.requestClass = wasFresh ? .hit : .revalidated
        } else if cached.byteCount > 0 {
            outcome.requestClass = .partial
        }
        outcome.forwarding =
            switch outcome.requestClass {
            case .bypass: .bypass
            case .miss: .miss
            case .partial: .partial
            case .revalidated: .stale
            case .hit, .stale, .negative, .error: nil
            }
        outcome.isStored = generation.isStorable && ![.hit, .revalidated].contains(outcome.requestClass)
        outcome.isCollapsed = joined || (wasKnown && found.isJoining && cached.byteCount < wanted)
        outcome.upstreamStatus = outcome.requestClass == .hit ? nil : status
        outcome.timeToLive = generation.freshUntil.map { $0.since(now) }
        let age = wasKnown ? generation.age(at: now) : generation.initialAge
        return ContentRead(
            asset: asset, reader: reader, plan: plan, outcome: outcome, age: age, cachedBefore: cached)
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

extension ContentRequest {
    /// What the first upstream request for an unknown asset asks for: the beginning of the first range wanted.
    var openingWindow: UpstreamRequest.Window {
        let first = FillLedger.Settings().firstWindowBytes
        if isHead { return .closed(0..<1) }
        guard case .ranges(let specs) = RangeHeader.parse(headers.combined("Range")), let spec = specs.first else {
            return .closed(0..<first)
        }
        return spec.opening(limit: first)
    }
}
