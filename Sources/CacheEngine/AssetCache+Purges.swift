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
        let urls = try selection.urls.map { (texts) throws(CacheError) in try normal(texts) }
        let chosen = try await context.store.catalog.assetIDs(
            matching: AssetSelection(
                origin: selection.origin, prefix: selection.prefix, tag: selection.tag, urls: urls,
                ids: selection.assetIDs, contentType: selection.contentType?.lowercased(),
                createdBefore: selection.minAge.map { now - $0 }))
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
        context.refusals.forgetAll()
        var rest = plan.assets[...]
        while !rest.isEmpty, !purges.isCancelled(plan.id) {
            let planned = Set(rest.prefix(Self.batch))
            rest = rest.dropFirst(Self.batch)
            let present = try await context.store.catalog.assetIDs(matching: AssetSelection(ids: planned.map(\.id)))
            let same = present.filter { planned.contains(PurgePlan.Chosen($0)) }
            if plan.isSoft {
                try await expireSoftly(same.map(\.id))
            } else {
                try await evictor.remove(same.map(\.id), because: .purge, telling: Self.deleted)
            }
            let freed = plan.isSoft ? 0 : same.reduce(0) { $0 + $1.cachedBytes }
            purges.change(plan.id) { plan in
                plan.standing.assetsDone += same.count
                plan.standing.assetsChanged += planned.count - same.count
                plan.standing.freedBytes += freed
            }
        }
    }

    private func normal(_ urls: [String]) throws(CacheError) -> [String] {
        var normal: [String] = []
        for (index, url) in urls.enumerated() {
            do {
                normal.append(try context.upstream.parse(url: url).text)
            } catch {
                throw CacheError(.invalidField("urls[\(index)]"), error.message)
            }
        }
        return normal
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
