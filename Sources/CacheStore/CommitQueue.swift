package import CacheCore
import Dispatch
import Logging
import Synchronization

/// The crash rule: bytes, then `fdatasync`, then the catalog's commit; and for removals the commit, then the disk.
///
/// One queue for all assets groups what they report into commits. What is reported is done in the order of the reports:
/// work that is reported after a removal is a new life of the asset and outlives it.
package final class CommitQueue: Sendable {
    /// How much may be lost in a crash before the next commit is made.
    package struct Limits: Hashable, Sendable {
        package var interval: Duration
        package var bytes: Int64

        package init(interval: Duration = .seconds(2), bytes: Int64 = 8 << 20) {
            self.interval = interval
            self.bytes = bytes
        }
    }

    private let store: Store
    private let limits: Limits
    private let lost: @Sendable (FileName, ByteRangeSet) -> Void
    private let pending = Mutex(PendingWork())
    /// Commits are made here, one after the other.
    private let queue = DispatchQueue(label: "larder.commits", qos: .userInitiated)
    private let someWork = Gate()
    private let muchWork = Gate()

    /// - Parameter lost: told, on a thread of the queue's own, of bytes that the disk failed to sync. They are never
    ///   committed, and the file takes no more writes: the reader's picture of it must give them up.
    package init(
        store: Store, limits: Limits = Limits(),
        lost: @escaping @Sendable (FileName, ByteRangeSet) -> Void = { _, _ in }
    ) {
        self.store = store
        self.limits = limits
        self.lost = lost
    }

    /// A new asset, or a new generation of one: its row is made or replaced. Where generation or file change, the old
    /// extents go in the same commit and the old file after it.
    ///
    /// Nil as the file: an asset without bytes, or the file the row has where the generation is the same. What uses and
    /// administrators have changed (hits, pin, tags, lifetime) stays as it is in a row that is there.
    package func began(_ record: AssetRecord, file: SparseFile?) {
        add { $0.begin(record, file: file) }
    }

    /// New knowledge of the same generation: changes the row where it is there, and never makes one.
    package func refreshed(_ record: AssetRecord) {
        add { $0.refresh(record) }
    }

    /// Bytes that have just been written. Without effect where the file is not, or no longer, that of a row.
    package func grew(_ file: SparseFile, _ range: ByteRange) {
        guard let name = file.name, !range.isEmpty else { return }
        add { $0.grow(file, name.serial, range) }
    }

    /// Uses of an asset; without effect where it has no row.
    package func touched(_ asset: AssetID, at time: Timestamp, hits: Int64 = 1) {
        add { $0.use(asset, at: time, hits: hits) }
    }

    /// As `remove`, for one asset and without waiting: done with the next commit.
    package func discard(_ asset: AssetID) {
        add { $0.remove(asset) }
    }

    /// Takes assets out: what is pending for them at once, then their rows, then, those being gone for good, their
    /// files. Bytes that old readers still hold open stay readable for them. `lastFiles`: the files that are taken away;
    /// what has been begun anew meanwhile, with a later one, stays.
    package func remove(
        _ assets: [AssetID], lastFiles: [AssetID: FileName] = [:]
    ) async throws(CacheError) {
        add { work in
            for asset in assets { work.remove(asset, filesUpTo: lastFiles[asset]?.serial ?? .max) }
        }
        try await flush()
    }

    /// Takes runs of bytes out: what is pending of them at once, then from the rows, then from the disk. Bytes that are
    /// written there after this call, and reported, are spared.
    package func punch(_ file: SparseFile, _ ranges: [ByteRange]) async throws(CacheError) {
        guard let name = file.name else {
            throw CacheError(.internal, "A transient file has no bytes that could be given up.")
        }
        file.doom(ranges)
        add { $0.cut(file, name.serial, ranges) }
        try await flush()
    }

    /// Returns when everything that was reported before the call is durable. An error says that some of it is not yet;
    /// that stays pending, except bytes the disk failed to sync.
    package func flush() async throws(CacheError) {
        let outcome = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.commit()) }
        }
        try outcome.get()
    }

    /// Makes commits as the limits ask for them, until the task is cancelled; then a last one.
    package func run(clock: some Clock<Duration>) async {
        while !Task.isCancelled {
            await someWork.wait()
            if Task.isCancelled { break }
            await withTaskGroup { group in
                group.addTask { try? await clock.sleep(for: self.limits.interval) }  // cancelled: the wait is over
                group.addTask { await self.muchWork.wait() }
                await group.next()
                group.cancelAll()
            }
            if await !commitLogged() {
                try? await clock.sleep(for: min(limits.interval, .seconds(2)))  // as above; the disk is given time
            }
        }
        _ = await commitLogged()
    }

    private func commitLogged() async -> Bool {
        do throws(CacheError) {
            try await flush()
            return true
        } catch {
            store.logger.error(
                "commit failed",
                metadata: ["error": "\(error)", "cause": "\(error.cause.map { "\($0)" } ?? "none")"])
            return false
        }
    }

    private func add(_ change: (inout sending PendingWork) -> Void) {
        let isMuch = pending.withLock { work in
            change(&work)
            // What is not synced keeps its descriptor.
            return work.byteCount >= limits.bytes || work.growth.count >= store.shelf.limit / 2
        }
        someWork.open()
        if isMuch { muchWork.open() }
    }

    /// Runs on `queue`.
    private func commit() -> Result<Void, CacheError> {
        someWork.close()
        muchWork.close()
        var work = pending.withLock { $0.take() }
        guard !work.isEmpty else { return .success(()) }
        var failure = sync(&work)
        do throws(CacheError) {
            for shard in Set(work.begun.values.compactMap { $0.file?.name?.shard }) {
                try store.disk.syncDirectory(store.layout.shard(shard))
            }
            let orphans = try commitWithReserve(work)
            failure = clear(work, orphans) ?? failure
        } catch {
            let earlier = work
            pending.withLock { $0.restore(earlier) }
            someWork.open()
            failure = error
        }
        return failure.map { .failure($0) } ?? .success(())
    }

    /// On a full disk the reserve makes room: what frees space must be committed first.
    private func commitWithReserve(_ work: PendingWork) throws(CacheError) -> [FileName] {
        do throws(CacheError) {
            return try store.catalog.commit(work)
        } catch {
            guard error.code == .storageFull, try store.reserve.release() else { throw error }
            return try store.catalog.commit(work)
        }
    }

    /// Syncs every file that has grown.
    ///
    /// After a failed `fdatasync` the kernel may have dropped the bytes and calls the pages clean: a second attempt
    /// proves nothing. So the bytes are given up, also those that were reported meanwhile.
    private func sync(_ work: inout PendingWork) -> CacheError? {
        var failure: CacheError?
        for (serial, growth) in work.growth {
            do throws(CacheError) {
                try growth.file.sync()
            } catch {
                failure = error
                var ranges = work.dropGrowth(serial)
                for run in pending.withLock({ $0.dropGrowth(serial) }).runs { ranges.insert(run) }
                if let name = growth.file.name { lost(name, ranges) }
            }
        }
        return failure
    }

    /// Gives back to the disk what the catalog has given up; the first failure is answered, none stops the others.
    private func clear(_ work: PendingWork, _ orphans: [FileName]) -> CacheError? {
        var failure: CacheError?
        for name in orphans {
            do throws(CacheError) {
                try store.unlink(name)
            } catch  where error.code == .overloaded {
                failure = failure ?? error
                pending.withLock { $0.abandon(name) }
                someWork.open()
            } catch {
                failure = failure ?? error  // the next start removes the file
            }
        }
        for cut in work.cuts.values {
            do throws(CacheError) { try cut.file.punchDoomed() } catch { failure = failure ?? error }
        }
        do throws(CacheError) { try store.reserve.keep() } catch { failure = failure ?? error }
        return failure
    }
}
