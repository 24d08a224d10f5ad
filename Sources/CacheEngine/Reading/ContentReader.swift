package import CacheCore
import CacheStore
import Logging

/// Serves reads of content: from disk, with upstream requests for missing bytes, or the origin's fallback.
package final class ContentReader: Sendable {
    let context: EngineContext
    let resolver: AssetResolver
    private let configuration: CacheConfiguration
    private let settings: LiveCacheSettings
    private let clock: any Clock<Duration>
    /// Resolved targets of mounted references.
    private let targets = ResolvedTargetCache()
    private let forwardedFields: ForwardedFields
    /// Guards the use counts of assets that are not stored.
    private let admission = OrderedMutex(.leaf, AdmissionFilter())

    init(
        resolver: AssetResolver, configuration: CacheConfiguration, settings: LiveCacheSettings,
        clock: any Clock<Duration>
    ) {
        context = resolver.context
        forwardedFields = ForwardedFields(of: resolver.context)
        self.resolver = resolver
        self.configuration = configuration
        self.settings = settings
        self.clock = clock
    }

    /// The name of this process in `CDN-Loop` (RFC 8586).
    package var loopName: String { context.upstreams.loopName }

    // MARK: Reads

    /// Opens a read of content; returns it with its plan as soon as its first byte is available.
    ///
    /// 1. A fresh negative cache entry is repeated without an upstream request.
    /// 2. The asset is opened, revalidated if needed, and its first byte is awaited.
    /// 3. If this fails, the origin's fallback is served. A failure without a fallback is counted here; all other
    ///    reads are counted when they end.
    ///
    /// Throws `ReadFailure`; its error decides the response status. The error is `.upstreamTimedOut(.read)` if the
    /// first byte took longer than `options.timeout` or, if that is nil, than the origin's own limit.
    package func read(
        _ reference: AssetReference, request: ContentRequest, options: ReadOptions = ReadOptions()
    ) async throws(ReadFailure) -> ContentRead {
        var target: AssetTarget
        do {
            target = try await self.target(of: reference, request, options)
        } catch {
            throw ReadFailure(error)
        }
        target.cdnLoop = request.cdnLoop
        let attempt = attempt(request, at: target, options)
        var failure: ReadFailure
        do {
            return try await firstByte(of: target, attempt)
        } catch {
            failure = error
        }
        if let read = await fallback(for: target, after: failure, isHead: request.isHead) { return read }
        context.counters.failed(
            failure.outcome.requestClass, origin: target.originName, isAborted: failure.error.code == .cancelled)
        (failure.isCounted, failure.asset) = (true, target.name)
        throw failure
    }

    /// The target of a request; within the time limit of the read if the origin forwards fields of readers.
    private func target(
        of reference: AssetReference, _ request: ContentRequest, _ options: ReadOptions
    ) async throws(CacheError) -> AssetTarget {
        let plain = try await targets.target(of: reference, resolvedBy: resolver)
        if case .known = reference { try plain.requireContentForAll() }
        guard !plain.settings.forwarded.isEmpty else { return plain }
        return try await withDeadline(options.timeout ?? plain.settings.readTimeout, .read, clock: clock) {
            [self] () async throws(CacheError) in try await forwardedFields.target(of: request, at: plain)
        }
    }

    /// Returns the read when its first byte is available. Throws the stored refusal, or the failure of this attempt,
    /// which includes a timeout after `attempt.limit`.
    private func firstByte(of target: AssetTarget, _ attempt: ReadAttempt) async throws(ReadFailure) -> ContentRead {
        if let read = repeated(of: target, attempt) { return read }
        if let refusal = keptRefusal(of: target, attempt) { throw refusal }
        do {
            return try await withDeadline(attempt.limit, .read, clock: clock) {
                [self] () async throws(CacheError) in try await begin(target, attempt)
            }
        } catch {
            if case .upstreamRefused = error.code, let read = repeated(of: target, attempt) { return read }
            throw failure(error, of: target)
        }
    }

    /// The parameters of a read that starts now. The request's cache directives count only if the origin obeys them.
    func attempt(_ request: ContentRequest, at target: AssetTarget, _ options: ReadOptions) -> ReadAttempt {
        ReadAttempt(
            request: request,
            directives: target.settings.requestDirectives ? RequestDirectives(request.headers) : RequestDirectives(),
            began: context.wallClock.now(), uptime: context.uptime(), forwarded: target.forwarded,
            limit: options.timeout ?? target.settings.readTimeout)
    }

    /// Opens the asset and its read, in at most four rounds. A new round starts in these cases:
    ///
    /// - The reader's header fields select another variant of the asset.
    /// - The asset changed before its first byte was sent: the next round continues with the successor.
    /// - The upstream has no such range, but the request also has a condition or another range that decides the
    ///   response: the next round first requests one byte, to learn the asset's description.
    ///
    /// Throws `.assetChanged` after the fourth round.
    private func begin(_ target: AssetTarget, _ attempt: ReadAttempt) async throws(CacheError) -> ContentRead {
        var (target, attempt) = (target, attempt)
        attempt.isUncached = await isTooRare(target, at: attempt.began)
        var next: OpenAsset?
        defer { if let next { context.openAssets.release(next) } }
        for _ in 0..<4 {
            let asset = if let carried = next.take() { carried } else { try await openToServe(target, attempt) }
            do {
                switch try await begin(asset, &attempt) {
                case .read(let read): return read
                case .variant(let variant):
                    target = variant
                    attempt.forwarding = .varyMiss
                }
            } catch {
                switch error.code {
                case .assetChanged:
                    attempt.forwarding = attempt.forwarding ?? .stale
                    attempt.wasForwarded = true
                    next = context.openAssets.acquireSuccessor(of: asset)
                case .rangeNotSatisfiable where attempt.opening != .first && !attempt.request.asksForOneRangeOnly:
                    attempt.opensWithFirstByte = true
                default: throw error
                }
            }
        }
        throw CacheError(.assetChanged, "The upstream returned a different version of the asset for each request.")
    }

    /// Whether the response can be sent from disk without any upstream request.
    func isServedWithoutRequest(_ asset: OpenAsset, _ attempt: ReadAttempt) -> Bool {
        guard let generation = asset.record?.generation, !freshnessDecision(of: asset, attempt).mustConfirm else {
            return false
        }
        let plan = plan(attempt.request, generation, of: asset)
        return asset.look { $0.ledger.lookUp(plan.neededRanges) }.cached.byteCount == plan.neededBytes
    }

    /// The variant that the reader's header fields select in place of this asset (RFC 9111 §4.1); nil if this asset is
    /// the right one, or if nothing is known of it yet.
    func chosenVariant(of asset: OpenAsset, _ attempt: ReadAttempt) -> AssetTarget? {
        guard let generation = asset.record?.generation else { return nil }
        let target = asset.target
        let fields = Variation.fields(
            of: attempt.request.headers, chosenBy: generation.headers, and: target.variant,
            ignoring: target.settings.ignoreVary)
        return fields == target.variant ? nil : target.variant(fields)
    }

    /// Decides whether the stored response may be used for this read (RFC 9111 §4).
    ///
    /// A response that was received after the request started counts as fresh: it is the answer to this read or to a
    /// concurrent one.
    func freshnessDecision(of asset: OpenAsset, _ attempt: ReadAttempt) -> FreshnessDecision {
        let (record, isNew, isSettling, isBare) = asset.look {
            ($0.record, $0.isDescribed(since: attempt.uptime), !$0.fills.isEmpty, $0.isBare)
        }
        let rules = UseRules(
            freshness: asset.freshness, staleIfError: asset.target.settings.staleIfError,
            directives: attempt.directives)
        let use = record.map { record in
            if isBare, plan(attempt.request, record.generation, of: asset).status == 416 {
                // A `HEAD` response may state another length than a `GET` response: only the upstream can reject a
                // range.
                return StoredUse.confirm
            }
            if asset.target.hasMoved(since: record) { return .confirm }
            return isNew ? .fresh : record.generation.use(at: attempt.began, under: rules)
        }
        return FreshnessDecision(isKnown: record != nil, isSettling: isSettling, use: use, rules: rules)
    }

    /// Opens the read on an acquired asset. Consumes the hold on `asset`: the read keeps it, every other result
    /// releases it.
    ///
    /// The variant is checked twice: against the stored response, and again after the upstream has described the
    /// asset.
    private func begin(_ asset: OpenAsset, _ attempt: inout ReadAttempt) async throws(CacheError) -> Opening {
        var freshness = freshnessDecision(of: asset, attempt)
        var reader: FillLedger.ReaderID?
        do {
            if let variant = chosenVariant(of: asset, attempt) {
                context.openAssets.release(asset)
                return .variant(variant)
            }
            let joined = try await joinOrServeStale(asset, &attempt, &freshness)
            reader = joined
            // The reader is present, and the revalidation has its fields.
            if freshness.use == .staleWhileRevalidate { asset.confirmBehind() }
            if let variant = chosenVariant(of: asset, attempt) {
                attempt.attempts = asset.leave(joined)
                attempt.attempts?.count = 0  // The upstream has answered: no request for the variant is a repetition.
                context.openAssets.release(asset)
                return .variant(variant)
            }
            return .read(try await answer(attempt, from: asset, to: joined, freshness))
        } catch {
            if let reader { attempt.attempts = asset.leave(reader) }
            context.openAssets.release(asset)
            throw error
        }
    }

    /// Joins the asset as a reader. If the upstream fails to revalidate a stale response and `stale-if-error` permits
    /// its use (RFC 5861 §4), joins again without revalidation and records the failure in `freshness`.
    private func joinOrServeStale(
        _ asset: OpenAsset, _ attempt: inout ReadAttempt, _ freshness: inout FreshnessDecision
    ) async throws(CacheError) -> FillLedger.ReaderID {
        do {
            return try await described(asset, &attempt, freshness)
        } catch {
            guard freshness.mustConfirm, error.code.isUpstreamFailure, let generation = asset.record?.generation,
                generation.servesErrors(at: attempt.began, under: freshness.rules)
            else { throw error }
            freshness = FreshnessDecision(
                isKnown: true, isSettling: false, use: .stale, rules: freshness.rules, failure: error.code)
            return try await described(asset, &attempt, freshness)
        }
    }

    /// Joins, and waits until the asset is described, and revalidated if required. If a stale response may be served
    /// instead, the revalidation gets half of the read's time limit, so that time is left to send the stale response.
    private func described(
        _ asset: OpenAsset, _ attempt: inout ReadAttempt, _ freshness: FreshnessDecision
    ) async throws(CacheError) -> FillLedger.ReaderID {
        let reader = try asset.join(
            opening: attempt.opening, priority: .live, mustConfirm: freshness.mustConfirm, began: attempt.uptime,
            waitLimit: max(attempt.limit, asset.target.settings.readTimeout), forwarded: attempt.forwarded,
            attempts: attempt.attempts,
            refused: { [context] in
                // A refusal received since the request started answers it, whichever reader caused it. So does a fresh
                // one: it may have been recorded after this read first looked for it.
                guard !freshness.isKnown, let refusal = context.refusals[asset.id], refusal.isComplete(for: attempt)
                else { return nil }
                return refusal.uptime >= attempt.uptime || isUsable(refusal, for: attempt) ? refusal.error : nil
            })
        do {
            let generation = asset.record?.generation
            if freshness.mustConfirm, generation?.servesErrors(at: attempt.began, under: freshness.rules) == true {
                _ = try await withDeadline(attempt.limit / 2, .read, clock: clock) {
                    () async throws(CacheError) in try await asset.nextPresence(of: reader)
                }
            } else {
                _ = try await asset.nextPresence(of: reader)
            }
            return reader
        } catch {
            attempt.attempts = asset.leave(reader)
            throw error
        }
    }

    /// Plans the response and waits for its first byte, so that an earlier failure still sets the response status.
    ///
    /// The plan is made again if the wait has found the length of the asset, or has brought header fields that require
    /// other bytes.
    private func answer(
        _ attempt: ReadAttempt, from asset: OpenAsset, to reader: FillLedger.ReaderID, _ freshness: FreshnessDecision
    ) async throws(CacheError) -> ContentRead {
        let isFirst = !freshness.isKnown || attempt.wasForwarded
        while true {
            var generation = asset.record?.generation ?? Generation(receivedAt: context.wallClock.now())
            var plan = plan(attempt.request, generation, of: asset, isFirst: isFirst)
            let found = asset.look { $0.ledger.lookUp(plan.neededRanges) }
            if let first = plan.neededRanges.first {
                asset.want(first, by: reader, later: Array(plan.neededRanges.dropFirst()))
                _ = try await asset.nextPresence(of: reader)
                guard asset.look({ $0.ledger.length }) == generation.length else {
                    asset.recordLength()
                    continue
                }
                if let renewed = asset.record?.generation, renewed != generation {
                    // The response to this reader's request has updated the header fields (RFC 9111 §3.4).
                    let needed = plan.neededRanges
                    (generation, plan) = (renewed, self.plan(attempt.request, renewed, of: asset, isFirst: isFirst))
                    guard plan.neededRanges == needed else { continue }
                }
            }
            return contentRead(attempt, plan, generation, found: found, freshness, from: asset, to: reader)
        }
    }

    /// Creates the read that serves `plan`. It consumes the hold on `asset` and the `reader`.
    ///
    /// `found`: the needed bytes on disk when the read began, and whether a fill in flight brings the others. `view`
    /// creates the snapshot from which later requests can be served; by default there is none.
    private func contentRead(
        _ attempt: ReadAttempt, _ plan: ContentPlan, _ generation: Generation,
        found: (cached: ByteRangeSet, isJoining: Bool), _ freshness: FreshnessDecision, from asset: OpenAsset,
        to reader: FillLedger.ReaderID, view: (ReadOutcome) -> FreshAssetSnapshot? = { _ in nil }
    ) -> ContentRead {
        let now = context.wallClock.now()
        let cached = freshness.isKnown && !attempt.wasForwarded ? found.cached : ByteRangeSet()
        var outcome = outcome(attempt, plan, generation, cached: cached, freshness, keeps: asset.target)
        let isMissing = cached.byteCount < plan.neededBytes
        outcome.isCollapsed = isMissing && (freshness.isKnown ? found.isJoining : freshness.isSettling)
        if let failure = freshness.failure {
            outcome.upstreamStatus = failure.upstreamStatus
        } else if outcome.forwarding != nil {
            outcome.upstreamStatus = asset.look { $0.upstreamStatus }
        }
        outcome.timeToLive = generation.freshUntil.map { $0.since(now) }
        let age = freshness.isKnown ? generation.age(at: now) : generation.initialAge
        let hasAge = freshness.isKnown || age >= .seconds(1)
        return ContentRead(
            asset: asset, reader: reader, plan: plan, outcome: outcome, age: hasAge ? age : nil,
            cachedBefore: cached, view: view(outcome))
    }

    /// Plans the response to `request` from the description of the asset. `isFirst`: the upstream response was
    /// requested for this read, so that header fields meant for one response only are included.
    func plan(
        _ request: ContentRequest, _ generation: Generation, of asset: OpenAsset, isFirst: Bool = false
    ) -> ContentPlan {
        let settings = asset.target.settings
        var plan = ContentPlan.make(
            request, generation: generation, now: context.wallClock.now(), isFirst: isFirst,
            unknownLength: settings.unknownLength, boundary: context.random.identifier())
        // Caches between this service and the reader must not share the response (RFC 9110 §12.5.5).
        if !settings.forwarded.isEmpty { plan.headers.append("Vary", settings.forwarded.joined(separator: ", ")) }
        return plan
    }

    /// The request class, and the reason for an upstream request, of a read that serves `plan`. `cached`: the needed
    /// bytes that were on disk when the read began.
    func outcome(
        _ attempt: ReadAttempt, _ plan: ContentPlan, _ generation: Generation, cached: ByteRangeSet,
        _ freshness: FreshnessDecision, keeps target: AssetTarget
    ) -> ReadOutcome {
        if generation.passedStatus ?? 0 >= 400 { return ReadOutcome(requestClass: .error, forwarding: .miss) }
        guard generation.isStorable, !target.storesNothing else {
            return ReadOutcome(requestClass: .bypass, forwarding: .bypass)
        }
        let wanted = plan.neededBytes
        guard freshness.isKnown, !attempt.wasForwarded, cached.byteCount == wanted || wanted == 0 else {
            let isPartial = cached.byteCount > 0
            return ReadOutcome(
                requestClass: isPartial ? .partial : .miss,
                forwarding: isPartial ? .partial : attempt.forwarding ?? .miss, isStored: true)
        }
        switch freshness.use {
        case .confirm: return ReadOutcome(requestClass: .revalidated, forwarding: .stale)
        case .confirmOnRequest: return ReadOutcome(requestClass: .revalidated, forwarding: .request)
        case .stale, .staleWhileRevalidate:
            let wasAsked = freshness.failure.map { !$0.isUnasked } ?? false
            return ReadOutcome(requestClass: .stale, forwarding: wasAsked ? .stale : nil, detail: "stale")
        case .fresh, nil: return ReadOutcome(requestClass: .hit)
        }
    }

    // MARK: Reads from disk alone

    /// The synchronous fast path of `read`. Returns a read if the asset is open, its response is a fresh 200, 206 or
    /// 304, and all needed bytes are on disk.
    ///
    /// Returns nil, and counts nothing, in all other cases; the caller must then use `read`. `admits` decides whether
    /// the reader may access content of that kind.
    package func readIfCached(
        _ reference: AssetReference, request: ContentRequest, admits: (ContentAccess) -> Bool
    ) -> ContentRead? {
        let changes = resolver.origins.changes
        let kept = targets.target(of: reference, changes: changes)
        guard var target = kept ?? resolveAtOnce(reference), admits(ContentAccess(target.settings)),
            context.refusals[target.id] == nil, target.settings.forwarded.isEmpty
        else { return nil }
        let found = target
        target.cdnLoop = request.cdnLoop
        let attempt = attempt(request, at: target, ReadOptions())
        // The second round is for the variant that the first one may have selected.
        for _ in 0..<2 {
            guard let asset = context.openAssets.acquire(target.id) else { return nil }
            asset.retarget(target)
            switch openAtOnce(asset, attempt, changes) {
            case .read(let read)?:
                if kept == nil { targets.keep(found, of: reference, changes: changes) }
                return read
            case .variant(let variant)?:
                context.openAssets.release(asset)
                target = variant
            case nil:
                context.openAssets.release(asset)
                return nil
            }
        }
        return nil
    }

    /// Resolves the reference of a mounted asset, for which no catalog lookup is needed.
    private func resolveAtOnce(_ reference: AssetReference) -> AssetTarget? {
        guard case .mounted(let origin, let path, nil) = reference else { return nil }
        // The error is dropped: `read` meets and reports it.
        return try? resolver.mounted(origin, path)
    }

    /// Opens the read if it qualifies for the fast path; a read consumes the hold on `asset`. Nil, or a variant,
    /// leaves the hold with the caller.
    private func openAtOnce(_ asset: OpenAsset, _ attempt: ReadAttempt, _ changes: UInt64) -> Opening? {
        if let variant = chosenVariant(of: asset, attempt) { return .variant(variant) }
        let version = asset.look { $0.version }
        let freshness = freshnessDecision(of: asset, attempt)
        guard freshness.use == .fresh, let generation = asset.record?.generation, generation.isStorable,
            let length = generation.length
        else { return nil }
        let plan = plan(attempt.request, generation, of: asset)
        guard [200, 206, 304].contains(plan.status),
            let (reader, cached) = asset.join(present: plan.neededRanges, length: length)
        else { return nil }
        return .read(
            contentRead(attempt, plan, generation, found: (cached, false), freshness, from: asset, to: reader) {
                FreshAssetSnapshot(
                    asset, version: version, generation: generation, plan: plan, outcome: $0, origins: resolver.origins,
                    originChanges: changes)
            })
    }

    // MARK: Opening

    /// Acquires the asset for a read. Returns a private, uncached instance if the asset is below the admission
    /// threshold, the store cannot keep it, the request says `no-store`, or the catalog row cannot be read. A readable
    /// asset is preferred if the response can be served from disk alone.
    ///
    /// Throws `.overloaded` if too many fills for readers are queued, and `.notCached` if the request says
    /// `only-if-cached` and an upstream request would be needed.
    private func openToServe(_ target: AssetTarget, _ attempt: ReadAttempt) async throws(CacheError) -> OpenAsset {
        let asset: OpenAsset
        do {
            asset = try await resolver.open(target)
        } catch  where error.code == .storageCorrupt {
            return try unstored(target, attempt)
        }
        if context.upstreams.client.queuedForReaders >= settings.current.settings.maxQueuedFills,
            !isServedWithoutRequest(asset, attempt)
        {
            context.openAssets.release(asset)
            throw CacheError(.overloaded, "Too many fills are queued: retry later, or raise limits.maxQueuedFills.")
        }
        let storesNothing = attempt.directives.noStore || attempt.isUncached || !context.store.canKeep
        guard storesNothing || attempt.directives.onlyIfCached, !isServedWithoutRequest(asset, attempt) else {
            return asset
        }
        context.openAssets.release(asset)
        return try unstored(target, attempt)
    }

    /// A private, empty instance of the asset that leaves no trace in the store. Throws `.notCached` for
    /// `only-if-cached`.
    private func unstored(_ target: AssetTarget, _ attempt: ReadAttempt) throws(CacheError) -> OpenAsset {
        guard !attempt.directives.onlyIfCached else {
            throw CacheError(
                .notCached, "The content is not completely cached and fresh, and the request says only-if-cached.")
        }
        let unstored = OpenAsset(target: target.unstored, context: context)
        context.openAssets.retain(unstored)
        return unstored
    }

    /// Admission control: counts the read, and returns whether the asset has had fewer than the policy's `minUses`
    /// reads. False if the asset is in the store already, or is never kept.
    private func isTooRare(_ target: AssetTarget, at now: Timestamp) async -> Bool {
        let minUses = configuration.policy.settings.minUses
        guard minUses > 1, !target.storesNothing, context.openAssets[target.id]?.record == nil,
            await !isKept(target.id)
        else { return false }
        return admission.withLock { $0.use(target.id, at: now) } < minUses
    }

    /// Whether the catalog has the asset. True on a catalog error, because opening the asset then reports that error.
    private func isKept(_ id: AssetID) async -> Bool {
        do { return try await context.store.catalog.asset(id) != nil } catch { return true }
    }

    // MARK: Failures

    /// The failure for `error`. If the upstream caused it, the outcome has the reason of the request and its status.
    private func failure(_ error: CacheError, of target: AssetTarget) -> ReadFailure {
        var failure = ReadFailure(error)
        guard error.code.isOfUpstream else { return failure }
        let asset = context.openAssets.acquire(target.id)
        defer { if let asset { context.openAssets.release(asset) } }
        failure.outcome.forwarding = asset?.record == nil ? .miss : .stale
        failure.outcome.upstreamStatus = error.code.upstreamStatus
        return failure
    }

    /// Reads the origin's fallback in place of a failed read: always complete, whatever range and conditions the
    /// client sent.
    ///
    /// Nil if the origin has no fallback, if the upstream is not the cause of the failure, or if the fallback cannot
    /// be read within the origin's time limit either; the last case is logged.
    private func fallback(for target: AssetTarget, after failure: ReadFailure, isHead: Bool) async -> ContentRead? {
        guard let fallback = target.settings.fallback, failure.error.code.deservesFallback else { return nil }
        var outcome = ReadOutcome(requestClass: .error, detail: "fallback")
        outcome.forwarding = failure.outcome.forwarding
        outcome.upstreamStatus = failure.outcome.upstreamStatus
        do {
            let read = try await withDeadline(target.settings.readTimeout, .read, clock: clock) {
                [self] () async throws(CacheError) in try await whole(of: fallback, for: target, isHead: isHead)
            }
            return try read.standingIn(for: target, as: outcome)
        } catch {
            context.logger.warning(
                "fallback could not be read", metadata: ["origin": "\(target.originName)", "error": "\(error)"])
            return nil
        }
    }

    private func whole(
        of fallback: OriginSettings.Fallback, for target: AssetTarget, isHead: Bool
    ) async throws(CacheError) -> ContentRead {
        let request = ContentRequest(isHead: isHead)
        switch fallback {
        case .asset(let id):
            let asset = try await resolver.resolve(.known(id))
            guard !asset.isReadersOwn else { throw AssetTarget.readerRequired }
            return try await begin(
                asset,
                ReadAttempt(
                    request: request, directives: RequestDirectives(), began: context.wallClock.now(),
                    uptime: context.uptime(),
                    limit: target.settings.readTimeout))
        case .file(let path): return try await whole(of: path, for: target, request)
        }
    }

    private func whole(
        of path: String, for target: AssetTarget, _ request: ContentRequest
    ) async throws(CacheError) -> ContentRead {
        guard let directory = settings.current.settings.fallbackDirectory else {
            throw CacheError(.notFound, "The fallback \(path) cannot be read: set fallbackDirectory.")
        }
        let (file, length) = try await context.diskThreads.run { [store = context.store] in
            let file = try store.openForeign(path, below: directory)
            return (file, try file.size())
        }
        let generation = Generation(
            length: length, contentType: MediaType.effectiveType(header: nil, path: path).type,
            receivedAt: context.wallClock.now())
        return try whole(of: file, generation, for: target, request, ReadOutcome(requestClass: .hit))
    }

    /// A read of a complete file outside the store, in place of the target's content.
    func whole(
        of file: SparseFile, _ generation: Generation, for target: AssetTarget, _ request: ContentRequest,
        _ outcome: ReadOutcome, age: Duration? = nil
    ) throws(CacheError) -> ContentRead {
        let asset = OpenAsset(foreign: file, described: generation, for: target, context: context)
        context.openAssets.retain(asset)
        let plan = ContentPlan.make(request, generation: generation, now: context.wallClock.now(), boundary: "")
        do {
            let reader = try asset.join(opening: .whole, priority: .live, mustConfirm: false)
            return ContentRead(
                asset: asset, reader: reader, plan: plan, outcome: outcome, age: age,
                cachedBefore: ByteRangeSet([0..<(generation.length ?? 0)]))
        } catch {
            context.openAssets.release(asset)
            throw error
        }
    }
}

extension CacheError.Code {
    /// The status of the upstream's response; nil if there was no response, or its status is unknown.
    var upstreamStatus: Int? {
        switch self {
        case .upstreamRefused(let status, _): status
        case .rangeNotSatisfiable: 416
        default: nil
        }
    }

    /// Whether no request was sent, because the circuit breaker refused it.
    var isUnasked: Bool { if case .upstreamUnreachable(.some) = self { true } else { false } }
}
