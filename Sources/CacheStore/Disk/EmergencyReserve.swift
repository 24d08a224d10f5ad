import CacheCore
import Synchronization

/// A file that reserves disk space for the catalog. On a full disk it is deleted, so that a store can still be opened
/// and bytes can be removed: both need a commit first.
final class EmergencyReserve: Sendable {
    /// Size in bytes: enough for the write-ahead log of a start and of some removals.
    static let size = 2 << 20

    private let path: String
    private let disk: any Disk
    /// Is told whether the reserve exists (`lacksReserve`).
    private let spill: SpillAllowance
    /// Whether the reserve is known to exist.
    private let isKept = OrderedMutex(.leaf, false)

    init(_ layout: StoreLayout, disk: any Disk, spill: SpillAllowance) {
        path = layout.reserve
        self.disk = disk
        self.spill = spill
    }

    /// Creates the reserve if it is missing and the disk has space for it. While it is missing, fetched bytes go to
    /// memory first; otherwise they would use up the space that evictions free.
    func keep() throws(CacheError) {
        guard !isKept.withLock({ $0 }) else { return }
        do throws(CacheError) {
            if try disk.status(of: path)?.size != Int64(Self.size) {
                let descriptor = try disk.open(path, .openOrCreate)
                defer { disk.close(descriptor) }
                // Not zeros: some file systems store zeros as holes.
                try disk.writeAll(descriptor, [UInt8](repeating: 0x4C, count: Self.size))
                try disk.sync(descriptor)
            }
            isKept.withLock { $0 = true }
            spill.lacksReserve.store(false, ordering: .relaxed)
        } catch  where error.code == .storageFull {
            spill.lacksReserve.store(true, ordering: .relaxed)
            try disk.unlink(path)
        }
    }

    /// Deletes the reserve; returns whether it existed.
    func release() throws(CacheError) -> Bool {
        isKept.withLock { $0 = false }
        spill.lacksReserve.store(true, ordering: .relaxed)
        guard try disk.status(of: path) != nil else { return false }
        try disk.unlink(path)
        return true
    }
}
