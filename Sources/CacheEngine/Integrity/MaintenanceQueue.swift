import CacheCore
import CacheStore
import Logging

/// Queue of store maintenance that reads detect and leave to a background task.
final class MaintenanceQueue: Sendable {
    /// One maintenance task.
    enum Work: Sendable {
        /// Orphaned bytes of the asset are evicting and must be removed; the asset has a hold for this task.
        case orphaned(OpenAsset, SparseFile, [ByteRange])
        /// All suspect bytes of the file are verified.
        case checked(FileName)
    }

    /// The queued tasks, for a single consumer.
    let work: AsyncStream<Work>
    private let begin: AsyncStream<Work>.Continuation

    init() { (work, begin) = AsyncStream.makeStream() }

    /// Queues a task; never blocks.
    func add(_ work: Work) { begin.yield(work) }
}

extension AssetCache {
    /// Performs queued maintenance until cancellation.
    func runMaintenance() async {
        for await work in context.maintenance.work {
            await logged("damaged bytes could not be removed from the disk") { () async throws(CacheError) in
                try await self.perform(to: work)
            }
        }
    }

    /// Performs one task. Orphaned bytes are removed after the commit that releases them (crash rule), and the asset's
    /// hold is released in any case.
    private func perform(to work: MaintenanceQueue.Work) async throws(CacheError) {
        switch work {
        case .orphaned(let asset, let file, let runs):
            defer {
                asset.finishEviction(runs, of: file)
                context.openAssets.release(asset)
            }
            context.commits.cut(file, runs)
            try await context.commits.flush()
        case .checked(let file):
            try await context.store.catalog.checked(file)
        }
    }
}
