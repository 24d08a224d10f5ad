package import CacheCore

extension AssetCache {
    /// The synchronous fast path of `read`. Returns a read if the asset is open, its response is fresh, all needed
    /// bytes are on disk, and the response is a 304 or has at most one run of bytes.
    ///
    /// Returns nil, and counts nothing, in all other cases; the caller must then use `read`. `admits` decides whether
    /// the reader may access content of that kind.
    package func readIfCached(
        _ reference: AssetReference, request: ContentRequest, admits: (OriginSettings.Access) -> Bool
    ) -> ContentRead? {
        let changes = origins.changes
        let kept = targets.target(of: reference, changes: changes)
        guard var target = kept ?? resolveAtOnce(reference), admits(target.settings.effectiveAccess),
            context.refusals[target.id] == nil
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
        guard [200, 206, 304].contains(plan.status), plan.body.count < 2,
            let (reader, cached) = asset.join(present: plan.neededRanges, length: length)
        else { return nil }
        return .read(
            contentRead(attempt, plan, generation, found: (cached, false), freshness, from: asset, to: reader) {
                FreshAssetSnapshot(
                    asset, version: version, generation: generation, outcome: $0, origins: origins,
                    originChanges: changes)
            })
    }
}
