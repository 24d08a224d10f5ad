import CacheCore
import Synchronization

/// What must be on the device before a commit may tell of it.
extension CommitQueue {
    /// Syncs every file that has grown.
    ///
    /// After a failed `fdatasync` the kernel may have dropped the bytes and calls the pages clean: a second attempt
    /// proves nothing. So the bytes are given up, also those that were reported meanwhile.
    func sync(_ work: inout PendingWork) -> CacheError? {
        var failure: CacheError?
        for (serial, growth) in work.growth {
            do throws(CacheError) {
                try growth.file.sync()
            } catch {
                failure = error
                giveUp(growth.file, serial, of: &work)
            }
        }
        return failure
    }

    /// Syncs the directories that new files are named in. What cannot be named for good is given up, so that nothing else waits
    /// for it; throws where that would be for want of a descriptor.
    func syncNames(_ work: inout PendingWork) throws(CacheError) -> CacheError? {
        var failure: CacheError?
        for shard in Set(work.begun.values.compactMap { $0.file?.name?.shard }) {
            do throws(CacheError) {
                try store.disk.syncDirectory(store.layout.shard(shard))
            } catch {
                guard error.code != .overloaded else { throw error }
                failure = error
                for (asset, begun) in work.begun where begun.file?.name?.shard == shard {
                    guard let file = begun.file, let name = file.name else { continue }
                    giveUp(file, name.serial, of: &work)
                    work.withdraw(asset)
                }
            }
        }
        return failure
    }

    private func giveUp(_ file: SparseFile, _ serial: Int64, of work: inout PendingWork) {
        var ranges = work.dropGrowth(serial)
        for run in pending.withLock({ $0.dropGrowth(serial) }).runs { ranges.insert(run) }
        if let name = file.name { lost(name, ranges) }
    }
}
