package import CacheCore

extension AssetCache {
    /// As `read`, for those who cannot wait: the read where the asset is open, what is asked for is wholly on disk and
    /// fresh, and one run of bytes, none, or a 304 answers it. Nil, and nothing counted, where `read` must be asked.
    ///
    /// `admits` decides whether the reader may have content of that kind.
    package func readAtOnce(
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

    private func resolveAtOnce(_ reference: AssetReference) -> AssetTarget? {
        guard case .mounted(let origin, let path, nil) = reference else { return nil }
        // What is wrong with it is told by whoever answers in place of this.
        return try? resolver.mounted(origin, path)
    }

    /// Takes over the hold on `asset` where it answers with a read.
    private func openAtOnce(_ asset: OpenAsset, _ attempt: ReadAttempt, _ changes: UInt64) -> Opening? {
        if let variant = chosenVariant(of: asset, attempt) { return .variant(variant) }
        let face = asset.look { $0.face }
        let standing = standing(of: asset, attempt)
        guard standing.use == .fresh, let generation = asset.record?.generation, generation.isStorable,
            let length = generation.length
        else { return nil }
        let plan = plan(attempt.request, generation, of: asset)
        guard [200, 206, 304].contains(plan.status), plan.body.count < 2,
            let (reader, cached) = asset.join(present: plan.neededRanges, length: length)
        else { return nil }
        return .read(
            contentRead(attempt, plan, generation, found: (cached, false), standing, from: asset, to: reader) {
                FreshView(
                    asset, face: face, generation: generation, outcome: $0, origins: origins, originChanges: changes)
            })
    }
}
