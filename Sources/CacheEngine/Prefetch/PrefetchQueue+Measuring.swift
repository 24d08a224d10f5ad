import CacheCore
import CacheStore

/// Sizes of queued items, and the space claims of jobs.
extension PrefetchQueue {
    /// The number of concurrent probes.
    private static let probes = 2
    /// The time limit of one probe.
    private static let probeTime = Duration.seconds(5)

    /// Probes the upstream for the sizes of queued items, at prefetch priority, until cancelled. After a failure the
    /// size stays unknown until the item runs.
    func measureAhead(in cache: AssetCache) async {
        for await _ in measuring {
            await withDiscardingTaskGroup { group in
                for _ in 0..<Self.probes { group.addTask { await self.measureQueued(in: cache) } }
            }
        }
    }

    /// Measures queued items until none of unknown size is left.
    private func measureQueued(in cache: AssetCache) async {
        while !Task.isCancelled, let (job, item) = takeUnmeasured() {
            // An item outside the limits of the job fails when it runs.
            guard (try? await check(item, of: job, in: cache)) != nil else { continue }
            let report = try? await cache.prober.probe(
                item.reference, timeout: Self.probeTime, refresh: false, priority: .prefetch)
            guard let length = report?.generation.length, let bytes = item.bytes(length: length) else { continue }
            change { $0.measured(item.index, of: job, bytes: bytes, at: $1) }
        }
    }

    /// The space claims of the job, created at the first call. They include the items that succeeded before a restart.
    func spaceClaims(of job: String, in cache: AssetCache) async throws(CacheError) -> JobSpaceClaims {
        if let jobSpace = spaceClaims.withLock({ $0[job] }) { return jobSpace }
        let pinned = try await catalog.sizes(of: cache.context.space.with { $0.pinned })
        claims.adoptPinned(pinned.mapValues(\.cachedBytes))
        let earlier = look { $0.succeededItems(of: job) }
        let sizes = try await catalog.sizes(of: earlier.compactMap(\.assetID))
        let jobSpace = JobSpaceClaims(claims)
        for item in earlier {
            guard let id = item.assetID, let length = sizes[id]?.length,
                let runs = try? item.runs(length: length)
            else { continue }
            jobSpace.claimAgain(runs, of: id, from: item.reference.originName)
        }
        return spaceClaims.withLock { spaceClaims in
            // A concurrent call may have created the claims first; this copy then releases its own.
            if let other = spaceClaims[job] { return other }
            spaceClaims[job] = jobSpace
            return jobSpace
        }
    }

    /// Drops the claims of finished jobs; this ends the protection of their items.
    func releaseFinishedClaims() {
        let jobs = spaceClaims.withLock { Array($0.keys) }
        let finished = look { schedule in jobs.filter { schedule.state(of: $0)?.isFinished ?? true } }
        let closed = spaceClaims.withLock { spaceClaims in finished.compactMap { spaceClaims.removeValue(forKey: $0) } }
        // The claims are released here, outside the lock.
        withExtendedLifetime(closed) {}
        claims.settle()
    }
}

extension AssetReference {
    /// The origin of the assets that the reference names. A reference by identifier does not tell it and counts as
    /// absolute.
    fileprivate var originName: String {
        if case .mounted(let origin, _, _) = self { origin } else { Origin.absoluteName }
    }
}
