import CacheCore
import Synchronization

/// Space that is kept back for the catalog, so that on a full disk a store can still be opened and bytes be removed:
/// both need a commit first.
final class Reserve: Sendable {
    /// Enough for the write-ahead log of a start and some removals.
    static let size = 2 << 20

    private let path: String
    private let disk: any Disk
    private let spill: SpillAllowance
    private let isKept = Mutex(false)

    init(_ layout: StoreLayout, disk: any Disk, spill: SpillAllowance) {
        path = layout.reserve
        self.disk = disk
        self.spill = spill
    }

    /// Takes the space where it is not taken and there is room for it. Until it is taken again, what is fetched goes to memory
    /// first: or it would take what evictions give back.
    func keep() throws(CacheError) {
        guard !isKept.withLock({ $0 }) else { return }
        do throws(CacheError) {
            if try disk.status(of: path)?.size != Int64(Self.size) {
                let descriptor = try disk.open(path, .openOrCreate)
                defer { disk.close(descriptor) }
                // Not zeros: some file systems store those as holes.
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

    /// Gives the space back to the disk; answers whether there was any.
    func release() throws(CacheError) -> Bool {
        isKept.withLock { $0 = false }
        spill.lacksReserve.store(true, ordering: .relaxed)
        guard try disk.status(of: path) != nil else { return false }
        try disk.unlink(path)
        return true
    }
}
