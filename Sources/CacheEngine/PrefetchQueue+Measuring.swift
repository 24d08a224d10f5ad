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
            guard let length = report?.generation.length, let runs = try? item.runs(length: length) else { continue }
            let bytes = runs.reduce(0) { $0 + $1.length }
            change { $0.measured(item.index, of: job, bytes: bytes, at: $1) }
        }
    }

    /// The account of the job's disk space.
    func room(of job: String, in cache: AssetCache) async throws(CacheError) -> PrefetchRoom {
        if let room = rooms.withLock({ $0[job] }) { return room }
        let pinned = try await catalog.pinnedBytes()
        let earlier = look { $0.succeededItems(of: job) }
        let room = PrefetchRoom(space: cache.context.space, pinnedBytes: pinned, earlier: earlier)
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
    }
}
