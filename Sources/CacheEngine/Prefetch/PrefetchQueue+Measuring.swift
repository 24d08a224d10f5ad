import CacheCore
import CacheStore
import Synchronization

extension PrefetchQueue {
    /// Probes that run at once.
    private static let probes = 2
    /// For one probe.
    private static let probeTime = Duration.seconds(5)

    /// Asks the upstream for the sizes of queued items, at the priority of prefetch, until it is cancelled. A failure leaves
    /// the size unknown until the item runs.
    func measureAhead(in cache: AssetCache) async {
        for await _ in measuring {
            await withDiscardingTaskGroup { group in
                for _ in 0..<Self.probes { group.addTask { await self.measureQueued(in: cache) } }
            }
        }
    }

    private func measureQueued(in cache: AssetCache) async {
        while !Task.isCancelled, let (job, item) = takeUnmeasured() {
            let report = try? await cache.probe(
                item.reference, timeout: Self.probeTime, refresh: false, priority: .prefetch)
            guard let length = report?.generation.length, let bytes = item.bytes(length: length) else { continue }
            change { $0.measured(item.index, of: job, bytes: bytes, at: $1) }
        }
    }

    /// The claims of the job; with those of items that succeeded before a restart.
    func room(of job: String, in cache: AssetCache) async throws(CacheError) -> PrefetchRoom {
        if let room = rooms.withLock({ $0[job] }) { return room }
        let pinned = try await catalog.sizes(of: cache.context.space.with { $0.pinned })
        claims.adoptPinned(pinned.mapValues(\.cachedBytes))
        let earlier = look { $0.succeededItems(of: job) }
        let sizes = try await catalog.sizes(of: earlier.compactMap(\.assetID))
        let room = PrefetchRoom(claims)
        for item in earlier {
            guard let id = item.assetID, let length = sizes[id]?.length,
                let runs = try? item.runs(length: length)
            else { continue }
            room.claimAgain(runs, of: id, from: item.reference.originName)
        }
        return rooms.withLock { rooms in
            if let other = rooms[job] { return other }
            rooms[job] = room
            return room
        }
    }

    /// Ends the protection of the items of jobs that are finished.
    func closeRooms() {
        let jobs = rooms.withLock { Array($0.keys) }
        let finished = look { schedule in jobs.filter { schedule.state(of: $0)?.isFinished ?? true } }
        let closed = rooms.withLock { rooms in finished.compactMap { rooms.removeValue(forKey: $0) } }
        withExtendedLifetime(closed) {}
        claims.settle()
    }
}

extension AssetReference {
    /// As assets of the reference have it; of a known asset it is not told.
    fileprivate var originName: String {
        if case .mounted(let origin, _, _) = self { origin } else { Origin.absoluteName }
    }
}
