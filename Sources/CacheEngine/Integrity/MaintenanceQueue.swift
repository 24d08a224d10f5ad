import CacheCore
import CacheStore
import Logging

/// Queue of store maintenance that reads detect and leave to a background task.
final class MaintenanceQueue: Sendable {
    /// One maintenance task.
    enum Work: Sendable {
        /// Orphaned bytes of the asset are evicting and must be removed; the asset has a hold for this task.
        case orphaned(OpenAsset, SparseFile, [ByteRange])
        /// The text of a complete playlist decides its lifetime; the asset has a hold for this task.
        case playlist(OpenAsset)
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
