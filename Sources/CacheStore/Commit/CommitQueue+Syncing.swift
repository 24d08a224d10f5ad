import CacheCore

/// First phase of a commit: sync everything that the catalog is about to reference.
extension CommitQueue {
    /// Syncs every file with new bytes; returns the last failure, nil if there was none.
    ///
    /// After a failed `fdatasync` the kernel may have dropped the bytes and marked the pages clean: a second attempt
    /// proves nothing. The bytes are therefore discarded, including those reported meanwhile.
    func sync(_ work: inout PendingWork) -> CacheError? {
        var failure: CacheError?
        // The file system writes its journal once for all files of which the write has begun.
        if work.growth.count > 1 { for growth in work.growth.values { growth.file.startSync() } }
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

    /// Syncs the directories of new files. If a directory cannot be synced, its new files are discarded, so that other
    /// work can proceed. Throws `overloaded` if the process has no free file descriptor.
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

    /// Discards the uncommitted bytes of a file and reports them to `lost`.
    private func giveUp(_ file: SparseFile, _ serial: Int64, of work: inout PendingWork) {
        var ranges = work.dropGrowth(serial)
        for run in pending.withLock({ $0.dropGrowth(serial) }).runs { ranges.insert(run) }
        if let name = file.name { lost(name, ranges) }
    }
}
