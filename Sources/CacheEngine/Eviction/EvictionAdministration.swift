package import CacheCore
import CacheStore
import Logging

/// A segment that would be evicted, and the state that determines its rank.
package struct EvictionCandidate: Sendable {
    package var assetID: AssetID
    package var key: String
    package var origin: String
    /// The range of the segment.
    package var range: ByteRange
    /// The segment's state in the eviction policy.
    package var account: SegmentAccount
}

/// Evictions and purges for the management API, with the plans of their dry runs.
package struct EvictionAdministration: Sendable {
    let context: EngineContext
    let resolver: AssetResolver
    let evictor: Evictor
    let encryption: EncryptionAdministration
    let clock: any Clock<Duration>
    /// The purges that delete their assets in the background.
    let background: BackgroundPurges
    private let plans: PurgePlanRegistry

    init(
        context: EngineContext, resolver: AssetResolver, evictor: Evictor, encryption: EncryptionAdministration,
        clock: any Clock<Duration>
    ) {
        self.context = context
        self.clock = clock
        self.encryption = encryption
        self.resolver = resolver
        self.evictor = evictor
        background = BackgroundPurges(context: context, evictor: evictor)
        plans = PurgePlanRegistry(context.store.catalog.purges.map(PurgePlan.init))
    }

    /// The number of assets that are removed between two checks for cancellation.
    private static let batch = 1024
    /// The time after which the catalog has an asset whose response has begun.
    private static let longestOpening = Duration.seconds(60)

    /// The current wall-clock time.
    package var now: Timestamp { context.wallClock.now() }

    // MARK: Evictions

    /// A page of the evictions within the last day, newest first.
    package func page(
        _ query: EvictionQuery
    ) async throws(CacheError) -> (items: [EvictionRecord], nextCursor: String?) {
        try await context.evictionLog.write()
        return try await context.store.catalog.evictionPage(query, since: context.wallClock.now() - EvictionLog.kept)
    }

    /// The number of evictions that `page` lists.
    package func count(_ query: EvictionQuery) async throws(CacheError) -> Int {
        try await context.store.catalog.evictionCount(query, since: context.wallClock.now() - EvictionLog.kept)
    }

    /// The segments that would be evicted to free `bytes` now, in eviction order, at most `limit`. Nothing is evicted.
    package func next(toFree bytes: Int64, limit: Int) async throws(CacheError) -> [EvictionCandidate] {
        var candidates: [EvictionCandidate] = []
        var names: [AssetID: (key: String, origin: String)] = [:]
        for (account, range) in evictor.next(toFree: bytes, limit: limit) {
            let id = account.segment.asset
            let name: (key: String, origin: String)
            if let known = names[id] { name = known } else { name = try await self.name(of: id) }
            names[id] = name
            candidates.append(
                EvictionCandidate(assetID: id, key: name.key, origin: name.origin, range: range, account: account))
        }
        return candidates
    }

    /// The key and the origin of an asset; both are empty if the asset is unknown.
    func name(of id: AssetID) async throws(CacheError) -> (key: String, origin: String) {
        if let asset = context.openAssets[id] { return (asset.target.key, asset.target.originName) }
        let record = try await context.store.catalog.asset(id)?.record
        return (record?.key ?? "", record?.origin ?? "")
    }

    /// Evicts segments until the goal is reached; a dry run reports the victims only. Throws `.overloaded` soon after a start.
    package func evict(
        _ goal: EvictionGoal, isDryRun: Bool, by owner: TokenOwner? = nil
    ) async throws(CacheError) -> EvictionReport {
        try await context.space.untilCounted(clock)
        let bytes =
            switch goal {
            case .free(let bytes): bytes
            case .target(let target): max(0, context.space.with { $0.usedBytes } - target)
            }
        guard isDryRun else { return try await evictor.free(bytes) }
        return try await planEviction(toFree: bytes, by: owner)
    }

    // MARK: Purges

    /// Removes the selected assets, or marks them stale if `isSoft`. A dry run only stores the plan, for an hour, so
    /// that it can be committed exactly as reported.
    ///
    /// `keys` and `urls` select further, unless they are nil. A key selects all variants of its asset. A URL in any
    /// spelling selects the assets that a request for it would read, under the mounts that contain it and under the
    /// absolute URL, and assets with a given key that were fetched from it.
    ///
    /// A purge of many assets, or one that `runsLater`, returns when it has taken effect: it runs in the background, or
    /// has made the assets stale.
    ///
    /// `isErasure`: the keys of the assets, which must be stored encrypted, are deleted first, and running responses are
    /// cut (``Store/erase(_:at:)``); the report has the receipt.
    ///
    /// Throws `.overloaded` if too many purges are running. The plan belongs to `owner`, and keeps `request`.
    package func purge(
        _ selection: AssetSelection, keys: [String]? = nil, urls: [String]? = nil, isSoft: Bool = false,
        isErasure: Bool = false, isDryRun: Bool, runsLater: Bool = false, by owner: TokenOwner? = nil,
        as request: PurgeRequest? = nil
    ) async throws(CacheError) -> EvictionReport {
        let scope = purgeScope(of: selection, keys: keys, urls: urls)
        if !isDryRun { begin(scope, of: selection.origin) }
        try await context.commits.flush()
        let chosen = try await choose(selection, keys: keys, urls: urls)
        if !isDryRun { try await expireRecent(scope, besides: chosen.map(\.id)) }
        var report = EvictionReport(isDryRun: isDryRun)
        report.isInBackground = !isDryRun && (runsLater || chosen.count >= BackgroundPurges.least)
        for asset in chosen where !report.isInBackground {
            report.add(
                EvictionReport.Entry(assetID: asset.id, key: asset.key, ranges: [], bytes: asset.cachedBytes))
        }
        report.pinnedAssets = chosen.count(where: \.isPinned)
        let plan = PurgePlan(
            id: context.random.identifier(), owner: owner, chosen: chosen, origin: selection.origin, isSoft: isSoft,
            isErasure: isErasure, request: request, expiresAt: now + PurgePlanRegistry.lifetime)
        if isSoft { report.freedBytes = 0 }
        guard isDryRun || report.isInBackground else {
            report.receipt = try await erase(plan)
            try await carryOut(plan)
            return report
        }
        try known.keep(plan, at: now)
        report.planID = plan.id
        if report.isInBackground { report.receipt = try await execute(plan.id, runsLater: true).receipt }
        return report
    }

    /// The same for the body of a request that was made at `time`.
    func carryOut(
        _ request: PurgeRequest, at time: Timestamp, runsLater: Bool = false, by owner: TokenOwner?
    ) async throws(CacheError) -> EvictionReport {
        try await purge(
            request.selection(at: time), keys: request.keys, urls: request.urls, isSoft: request.isSoft,
            isErasure: request.isErasure, isDryRun: request.isDryRun, runsLater: runsLater, by: owner, as: request)
    }

    /// The request and the token of a plan that was not started; nil for a plan of an eviction. Throws `.notFound`.
    func request(of id: String) throws(CacheError) -> (request: PurgeRequest, owner: TokenOwner?)? {
        let plan = try known.plan(id, at: now)
        return plan.progress.state == .planned ? plan.request.map { ($0, plan.owner) } : nil
    }

    /// Deletes the keys of the assets if the plan is an erasure. A commit that is not made yet could store them again, so
    /// all are made first.
    private func erase(_ plan: PurgePlan) async throws(CacheError) -> ErasureReceipt? {
        guard plan.progress.isErasure else { return nil }
        try await context.commits.flush()
        let receipt = try await context.store.erase(plan.assets, at: now)
        if !receipt.isLogEmpty { encryption.emptyLogLater() }
        context.logger.notice(
            "content erased",
            metadata: ["sequence": "\(receipt.sequence)", "assets": "\(receipt.assets.count)"])
        plans.change(plan.id) { $0.progress.receipt = receipt }
        return receipt
    }

    /// The plans, with the present progress of the purges in the background.
    private var known: PurgePlanRegistry {
        plans.update(from: context.store.catalog)
        return plans
    }

    /// The progress of a plan. Throws `.notFound` if it is unknown or has expired.
    package func plan(_ id: String) throws(CacheError) -> PurgePlan.Progress {
        try known.plan(id, at: now).progress
    }

    /// Whether the plan belongs to the token with its present limits, or contains only assets inside them. False for an
    /// unknown plan, and for an empty one of another token, or one whose assets were removed.
    package func isOpen(_ id: String, to token: TokenOwner) async throws(CacheError) -> Bool {
        guard token.limits.isLimited else { return true }
        guard let plan = try? known.plan(id, at: now) else { return false }
        if plan.owner == token { return true }
        let present = try await selected(AssetSelection(ids: plan.assets.map(\.id)))
        return !plan.assets.isEmpty && present.count == plan.assets.count
            && present.allSatisfy { token.limits.permits(key: $0.key) }
    }

    /// Executes exactly the plan: assets that have changed since it was made are left alone. A purge of many assets, or
    /// one that `runsLater`, returns when it has taken effect. Throws `.conflict` if the plan has been started before,
    /// and `.notFound`.
    package func commit(
        _ id: String, runsLater: Bool = false
    ) async throws(CacheError) -> PurgePlan.Progress {
        let plan = try known.plan(id, at: now)
        let isInBackground = plan.ranges == nil && (runsLater || plan.assets.count >= BackgroundPurges.least)
        var progress = try await execute(id, runsLater: isInBackground)
        progress.isInBackground = isInBackground
        return progress
    }

    /// Executes a registered plan. If it `runsLater`, a purge deletes its assets in the background.
    private func execute(_ id: String, runsLater: Bool) async throws(CacheError) -> PurgePlan.Progress {
        let plan = try plans.begin(id, at: now)
        let scope = purgeScope(of: plan)
        if plan.ranges == nil { begin(scope, of: plan.origin) }
        do throws(CacheError) {
            try await context.commits.flush()
            if plan.request != nil { try await expireRecent(scope, besides: plan.assets.map(\.id)) }
            _ = try await erase(plan)
            if runsLater, plan.canRunLater {
                forgetRefusals(plan)
                let purge = try await background.begin(plan)
                plans.change(id) { $0.run(as: purge) }
                return try known.plan(id, at: now).progress
            }
            try await carryOut(plan)
        } catch {
            plans.change(id) { $0.progress.state = .cancelled }
            throw error
        }
        plans.change(id) { if $0.progress.state == .running { $0.progress.state = .done } }
        return try plans.plan(id, at: now).progress
    }

    /// Deletes a plan, or stops the purge that executes it; assets removed before stay removed. Throws `.notFound`, and
    /// `.conflict` if the purge runs in the background.
    package func cancel(_ id: String) throws(CacheError) {
        _ = try known.plan(id, at: now)
        try plans.cancel(id)
    }

    /// A purge also clears the negative cache of its assets, of a token with limits only inside them.
    private func forgetRefusals(_ plan: PurgePlan) {
        let scope = purgeScope(of: plan)
        context.refusals.forgetAll { target in
            scope.mayContain(target, nil) && plan.owner?.limits.mayPermit(origin: target.originName) ?? true
        }
    }

    /// Executes the plan in batches until it is done or cancelled, and records the progress. An asset is skipped if
    /// its generation is not the planned one.
    private func carryOut(_ plan: PurgePlan) async throws(CacheError) {
        if plan.ranges == nil { forgetRefusals(plan) }
        var rest = plan.assets[...]
        while !rest.isEmpty, !plans.isCancelled(plan.id) {
            let planned = Set(rest.prefix(Self.batch))
            rest = rest.dropFirst(Self.batch)
            let present = try await context.store.catalog.assetIDs(matching: AssetSelection(ids: planned.map(\.id)))
            // An asset with another generation or creation time is not the planned one.
            let same = present.filter { planned.contains(AssetVersion($0)) }
            let freed: Int64
            if let ranges = plan.ranges {
                freed = try await evict(same.map(\.id), ranges)
            } else if plan.isSoft {
                try await evictor.expire(same.map(\.id))
                freed = 0
            } else {
                try await evictor.purge(same.map(\.id))
                freed = same.reduce(0) { $0 + $1.cachedBytes }
            }
            plans.change(plan.id) { plan in
                plan.progress.assetsDone += same.count
                plan.progress.assetsChanged += planned.count - same.count
                plan.progress.freedBytes += freed
            }
        }
    }

    /// Evicts the planned ranges, except leased bytes and pinned assets. Returns the freed bytes.
    private func evict(
        _ ids: [AssetID], _ ranges: [AssetID: [ByteRange]]
    ) async throws(CacheError) -> Int64 {
        var freed: Int64 = 0
        for id in ids where !context.space.with({ $0.pinned.contains(id) }) {
            freed += try await evictor.drop(ranges[id] ?? [], of: id, because: .request)
        }
        return freed
    }

    private func purgeScope(of selection: AssetSelection, keys: [String]?, urls: [String]?) -> PurgeScope {
        PurgeScope(selection, names: PurgeNames(resolver: resolver).scope(keys: keys, urls: urls))
    }

    private func purgeScope(of plan: PurgePlan) -> PurgeScope {
        plan.request.map { purgeScope(of: $0.selection(at: now), keys: $0.keys, urls: $0.urls) }
            ?? PurgeScope(AssetSelection(origin: plan.origin))
    }

    /// Copies of other nodes and responses from before this moment do not count as fresh any more. Other nodes first: a
    /// request that is made after the addition does not know of the purge otherwise.
    private func begin(_ scope: PurgeScope, of origin: String?) {
        // An unknown origin counts as any, so that names in requests do not add up.
        context.peers.purged(origin.flatMap { resolver.origins[$0] == nil ? nil : $0 })
        context.recentPurges.add(scope)
    }

    /// Makes assets stale that were opened shortly before the purge: the catalog may not have had them when it was asked.
    private func expireRecent(_ scope: PurgeScope, besides chosen: [AssetID]) async throws(CacheError) {
        let (chosen, since) = (Set(chosen), now - Self.longestOpening)
        let recent = context.openAssets.all.filter { asset in
            guard !chosen.contains(asset.id), let record = asset.record else { return false }
            return record.generation.receivedAt > since && scope.mayContain(asset.target, record)
        }
        if !recent.isEmpty { try await evictor.expire(recent.map(\.id)) }
    }

    /// The selected assets that also have one of the keys, and that a request for one of the URLs reads.
    private func choose(
        _ selection: AssetSelection, keys: [String]?, urls: [String]?
    ) async throws(CacheError) -> [SelectedAsset] {
        let names = PurgeNames(resolver: resolver)
        var selection = selection
        if let keys { selection.narrow(to: try await names.assets(keyed: keys)) }
        if let urls { selection.narrow(to: try await names.assets(at: urls)) }
        return try await selected(selection)
    }

    /// The selected assets. Those with given identifiers are queried in batches, because the number of values in an SQL
    /// statement is limited.
    private func selected(_ selection: AssetSelection) async throws(CacheError) -> [SelectedAsset] {
        guard let ids = selection.ids else { return try await context.store.catalog.assetIDs(matching: selection) }
        var (batch, selected, rest) = (selection, [SelectedAsset](), Array(Set(ids))[...])
        while !rest.isEmpty {
            batch.ids = Array(rest.prefix(Self.batch))
            rest = rest.dropFirst(Self.batch)
            selected += try await context.store.catalog.assetIDs(matching: batch)
        }
        return selected
    }

    /// Plans the eviction of the segments that would free `bytes`. The plan is stored like that of a purge.
    private func planEviction(toFree bytes: Int64, by owner: TokenOwner?) async throws(CacheError) -> EvictionReport {
        try await context.commits.flush()
        let victims = evictor.victims(toFree: bytes)
        let ranges = Dictionary(grouping: victims, by: \.victim.segment.asset).mapValues { $0.map(\.range) }
        let chosen = try await selected(AssetSelection(ids: Array(ranges.keys)))
        var report = evictor.plan(victims)
        let sizes = try await context.store.catalog.sizes(of: report.entries.map(\.assetID))
        report.describe(chosen) { sizes[$0]?.length }
        let plan = PurgePlan(
            id: context.random.identifier(), owner: owner, chosen: chosen, ranges: ranges, bytes: report.freedBytes,
            expiresAt: now + PurgePlanRegistry.lifetime)
        try plans.keep(plan, at: now)
        report.planID = plan.id
        return report
    }
}

extension AssetSelection {
    /// Removes the identifiers that are not among `others`.
    fileprivate mutating func narrow(to others: Set<AssetID>) { ids = ids?.filter(others.contains) ?? Array(others) }
}
