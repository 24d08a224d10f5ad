import CacheCore
import CacheStore
import Logging

/// What reads have found out about the store, and somebody else is to see to.
final class Upkeep: Sendable {
    enum Work: Sendable {
        /// The asset has given these bytes up; it is held.
        case unclaimed(OpenAsset, SparseFile, [ByteRange])
        /// All that was to be checked of the file has been.
        case checked(FileName)
    }

    let work: AsyncStream<Work>
    private let begin: AsyncStream<Work>.Continuation

    init() { (work, begin) = AsyncStream.makeStream() }

    func add(_ work: Work) { begin.yield(work) }
}

extension AssetCache {
    /// Does what reads have left to be done, until it is cancelled.
    func keepUp() async {
        for await work in context.upkeep.work {
            await logged("what is damaged could not be taken off the disk") { () async throws(CacheError) in
                try await self.see(to: work)
            }
        }
    }

    private func see(to work: Upkeep.Work) async throws(CacheError) {
        switch work {
        case .unclaimed(let asset, let file, let runs):
            defer {
                asset.gaveUp(runs, of: file)
                context.openAssets.release(asset)
            }
            context.commits.cut(file, runs)
            try await context.commits.flush()
        case .checked(let file):
            try await context.store.catalog.checked(file)
        }
    }
}
