package import CacheCore
import CacheStore

extension AssetCache {
    /// Assets that are taken out before it is looked whether the purge goes on.
    private static let batch = 1024

    /// Takes out, or marks stale, what is selected; of a dry run the plan is kept for an hour, to be carried out as it is.
    package func purge(
        _ selection: PurgeSelection, isSoft: Bool, isDryRun: Bool
    ) async throws(CacheError) -> EvictionReport {
        try await context.commits.flush()
        let chosen = try await choose(selection)
        var report = EvictionReport(isDryRun: isDryRun)
        for asset in chosen {
            report.add(
                EvictionReport.Entry(assetID: asset.id, key: asset.key, ranges: [], bytes: asset.cachedBytes))
        }
        report.pinnedAssets = chosen.count(where: \.isPinned)
        let plan = PurgePlan(
            id: context.chance.identifier(), chosen: chosen, isSoft: isSoft, expiresAt: now + PurgeBook.lifetime)
        if isSoft { report.freedBytes = 0 }
        if isDryRun {
            try purges.keep(plan, at: now)
            report.planID = plan.id
        } else {
            try await carryOut(plan)
        }
        return report
    }

    /// How the plan stands; throws `.notFound` where it is not, or no longer, known.
    package func purgePlan(_ id: String) throws(CacheError) -> PurgePlan.Standing {
        try purges.plan(id, at: now).standing
    }

    /// Takes out exactly what the plan names: assets that have become other ones since are left alone. Throws `.conflict`
    /// where that was begun before.
    package func commitPurge(_ id: String) async throws(CacheError) -> PurgePlan.Standing {
        let plan = try purges.begin(id, at: now)
        do throws(CacheError) {
            try await context.commits.flush()
            try await carryOut(plan)
        } catch {
            purges.change(id) { $0.standing.state = .cancelled }
            throw error
        }
        purges.change(id) { if $0.standing.state == .running { $0.standing.state = .done } }
        return try purges.plan(id, at: now).standing
    }

    /// Forgets a plan, or stops the purge that carries it out: what is gone stays gone.
    package func cancelPurge(_ id: String) throws(CacheError) {
        _ = try purges.plan(id, at: now)
        purges.cancel(id)
    }

    private func carryOut(_ plan: PurgePlan) async throws(CacheError) {
        if plan.ranges == nil { context.refusals.forgetAll() }
        var rest = plan.assets[...]
        while !rest.isEmpty, !purges.isCancelled(plan.id) {
            let planned = Set(rest.prefix(Self.batch))
            rest = rest.dropFirst(Self.batch)
            let present = try await context.store.catalog.assetIDs(matching: AssetSelection(ids: planned.map(\.id)))
            let same = present.filter { planned.contains(PurgePlan.Chosen($0)) }
            let freed: Int64
            if let ranges = plan.ranges {
                freed = try await evict(same.map(\.id), ranges)
            } else if plan.isSoft {
                try await expireSoftly(same.map(\.id))
                freed = 0
            } else {
                try await evictor.remove(same.map(\.id), because: .purge, telling: Self.deleted)
                freed = same.reduce(0) { $0 + $1.cachedBytes }
            }
            purges.change(plan.id) { plan in
                plan.standing.assetsDone += same.count
                plan.standing.assetsChanged += planned.count - same.count
                plan.standing.freedBytes += freed
            }
        }
    }

    /// Evicts the planned ranges, but for bytes that are being sent; answers how many bytes that freed.
    private func evict(
        _ ids: [AssetID], _ ranges: [AssetID: [ByteRange]]
    ) async throws(CacheError) -> Int64 {
        var freed: Int64 = 0
        for id in ids where !context.space.with({ $0.pinned.contains(id) }) {
            freed += try await evictor.drop(ranges[id] ?? [], of: id, because: .request)
        }
        return freed
    }

    private func choose(_ selection: PurgeSelection) async throws(CacheError) -> [SelectedAsset] {
        let names = PurgeNames(resolver: resolver)
        var named = selection.assetIDs.map(Set.init)
        if let keys = selection.keys {
            let keyed = try await names.assets(keyed: keys)
            named = named?.intersection(keyed) ?? keyed
        }
        if let urls = selection.urls {
            let located = try await names.assets(at: urls)
            named = named?.intersection(located) ?? located
        }
        let patterns = selection.patterns
        var isNamed: (@Sendable (String) -> Bool)?
        if let patterns { isNamed = { key in patterns.contains { $0.matches(key) } } }
        let prefix = selection.prefix ?? (patterns?.count == 1 ? patterns?.first?.prefix : nil)
        let conditions = AssetSelection(
            origin: selection.origin, prefix: prefix == "" ? nil : prefix, tag: selection.tag,
            contentType: selection.contentType?.lowercased(), createdBefore: selection.minAge.map { now - $0 })
        guard let named else {
            return try await context.store.catalog.assetIDs(matching: conditions, where: isNamed)
        }
        return try await selected(named, conditions, where: isNamed)
    }

    /// Those of the assets that meet the conditions; asked for in batches, because a statement takes only so many values.
    private func selected(
        _ ids: some Sequence<AssetID>, _ conditions: AssetSelection = AssetSelection(),
        where isNamed: (@Sendable (String) -> Bool)? = nil
    ) async throws(CacheError) -> [SelectedAsset] {
        var (conditions, selected, rest) = (conditions, [SelectedAsset](), Array(ids)[...])
        while !rest.isEmpty {
            conditions.ids = Array(rest.prefix(Self.batch))
            rest = rest.dropFirst(Self.batch)
            selected += try await context.store.catalog.assetIDs(matching: conditions, where: isNamed)
        }
        return selected
    }

    /// Plans the eviction of segments that would free `bytes`; the plan is kept as that of a purge is.
    func planEviction(toFree bytes: Int64) async throws(CacheError) -> EvictionReport {
        try await context.commits.flush()
        let victims = evictor.victims(toFree: bytes)
        let ranges = Dictionary(grouping: victims, by: \.victim.segment.asset).mapValues { $0.map(\.range) }
        let chosen = try await selected(ranges.keys)
        var report = evictor.plan(victims)
        let sizes = try await context.store.catalog.sizes(of: report.entries.map(\.assetID))
        report.describe(chosen) { sizes[$0]?.length }
        let plan = PurgePlan(
            id: context.chance.identifier(), chosen: chosen, ranges: ranges, bytes: report.freedBytes,
            expiresAt: now + PurgeBook.lifetime)
        try purges.keep(plan, at: now)
        report.planID = plan.id
        return report
    }

    func expireSoftly(_ ids: [AssetID]) async throws(CacheError) {
        try await context.commits.flush()  // what waits for its commit would make them fresh again
        for id in ids {
            _ = try await context.store.updateAsset(id, AssetChange(freshUntil: .some(nil)))
            guard let asset = context.openAssets.acquire(id) else { continue }
            asset.change { state in
                state.record?.generation.freshUntil = nil
                return ((), [])
            }
            context.openAssets.release(asset)
        }
    }
}
