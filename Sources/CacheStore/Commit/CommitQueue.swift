package import CacheCore
import Dispatch
import Logging

/// Group commit for all assets, with the crash-safe order. New bytes: write, `fdatasync`, then commit. Removals:
/// commit, then unlink or punch.
///
/// Reports take effect in the order in which they are made. Work reported after a removal belongs to a new life of the
/// asset and survives the removal.
package final class CommitQueue: Sendable {
    /// Limits of the work that a crash can lose. Reaching either one starts the next commit.
    package struct Limits: Hashable, Sendable {
        /// Maximum age of uncommitted work.
        package var interval: Duration
        /// Maximum number of uncommitted bytes.
        package var bytes: Int64

        package init(interval: Duration = .seconds(2), bytes: Int64 = 8 << 20) {
            self.interval = interval
            self.bytes = bytes
        }
    }

    let store: Store
    private let limits: Limits
    /// Callbacks; see `init`. None is called while a lock is held.
    let lost: @Sendable (FileName, ByteRangeSet) -> Void
    private let spoiled: @Sendable (FileName, [ByteRange]) -> Void
    private let freed: @Sendable (FileName, Int64) -> Void
    private let purged: @Sendable (Int64) -> Void
    private let committed: @Sendable (Duration) -> Void
    private let uptime: @Sendable () -> Duration
    /// Reported work that no commit has taken yet.
    let pending = OrderedMutex(.pendingWork, PendingWork())
    /// Uses that are not yet in `pending`. Lock order: `pending` before a shard of `uses`.
    private let uses = Sharded(.leaf) { [AssetID: PendingWork.Use]() }
    /// Punches that had to be deferred.
    private let held = OrderedMutex(.deferredPunches, DeferredPunches())
    /// Measures the commit lag. Lock order: `pending` before its lock.
    private let losses: CommitLagMeter
    /// Serial queue that runs the commits.
    private let queue = DispatchQueue(label: "larder.commits", qos: .userInitiated)
    /// The callers of `flush` that the next commit serves.
    private let flushers = OrderedMutex<[@Sendable (Result<Void, CacheError>) -> Void]>(.leaf, [])
    /// Open while work is pending.
    private let someWork = AsyncEvent()
    /// Open once a limit is reached.
    private let muchWork = AsyncEvent()

    /// - Parameter uptime: the time since any start, which measures the commit lag.
    /// - Parameter lost: called on the commit queue with bytes that the disk failed to sync. They are never committed,
    ///   and the file accepts no more writes: the owner must discard them.
    /// - Parameter spoiled: called on the commit queue with claimed bytes that failed verification. The catalog no
    ///   longer contains them.
    /// - Parameter freed: called on the commit queue with the bytes that a deferred punch returned to the disk.
    /// - Parameter purged: called on the commit queue with the disk usage of an unlinked file that belonged to a closed
    ///   asset of a purge.
    /// - Parameter committed: called on the commit queue with the duration of each successful commit.
    package init(
        store: Store, limits: Limits = Limits(), uptime: @escaping @Sendable () -> Duration,
        lost: @escaping @Sendable (FileName, ByteRangeSet) -> Void = { _, _ in },
        spoiled: @escaping @Sendable (FileName, [ByteRange]) -> Void = { _, _ in },
        freed: @escaping @Sendable (FileName, Int64) -> Void = { _, _ in },
        purged: @escaping @Sendable (Int64) -> Void = { _ in },
        committed: @escaping @Sendable (Duration) -> Void = { _ in }
    ) {
        self.store = store
        self.limits = limits
        self.uptime = uptime
        self.purged = purged
        self.committed = committed
        losses = CommitLagMeter(uptime: uptime)
        self.lost = lost
        self.spoiled = spoiled
        self.freed = freed
    }

    /// Reports a new asset or a new generation: the row is inserted or updated. If generation or file change, the same
    /// commit deletes the old extents, and the old file is unlinked after it.
    ///
    /// A nil file means: an asset without bytes, or, if the generation is the same, the file in the row. Usage counters
    /// and administrator settings (hits, pin, tags, lifetime) of an existing row are kept.
    package func began(_ record: AssetRecord, file: SparseFile?) {
        add { $0.begin(record, file: file) }
    }

    /// Reports that the bytes of an asset were copied to another file; it replaces the former one in its row. No
    /// effect if the row has no longer the former file, or if a purge has selected the asset: the bytes are not new.
    package func converted(_ record: AssetRecord, from former: FileName, to file: SparseFile) {
        add { $0.begin(record, file: file, converting: former) }
    }

    /// Reports new metadata of the same generation. Updates an existing row, and never inserts one.
    package func refreshed(_ record: AssetRecord) {
        add { $0.refresh(record) }
    }

    /// Reports written ranges that stay on disk (`SparseFile.kept`). No effect if no row references the file.
    package func grew(_ file: SparseFile, _ runs: [ByteRange]) {
        guard let name = file.name, !runs.isEmpty else { return }
        add { work in for run in runs { work.grow(file, name.serial, run, at: losses.uptime()) } }
    }

    /// Records a use of an asset. No effect if it has no row. Every read calls this, so it takes only the lock of one
    /// shard. The first use in a shard after a commit also wakes the queue.
    package func touched(_ asset: AssetID, at time: Timestamp, hits: Int64 = 1) {
        let isFirst = uses[asset].value.withLock { uses in
            let use = PendingWork.Use(at: time, hits: hits)
            defer { uses[asset] = uses[asset]?.and(use) ?? use }
            return uses.isEmpty
        }
        if isFirst { someWork.open() }
    }

    /// Removes an asset: its pending work at once, then its row, and after the commit its file. Readers that hold the
    /// file open can still read it.
    package func discard(_ asset: AssetID) {
        add { work in
            work.remove(asset)
            uses[asset].value.withLock { $0[asset] = nil }
        }
    }

    /// Whether the removal of the asset's row is pending or being committed. Do not load the asset then.
    package func isTakingOut(_ asset: AssetID) -> Bool {
        pending.withLock { $0.removals.contains(asset) || $0.removing.contains(asset) }
    }

    /// Unlinks a file that no row will reference.
    package func abandon(_ file: SparseFile) {
        guard let name = file.name else { return }
        add { $0.abandon(name) }
    }

    /// Removes ranges: from the pending work at once, then from the row, and after the commit from the disk. Bytes that
    /// are written there and reported after this call are kept. No effect on a transient file.
    package func cut(_ file: SparseFile, _ ranges: [ByteRange]) {
        guard let name = file.name else { return }
        file.markForPunch(ranges)
        add { $0.cut(file, name.serial, ranges, makingHoles: true) }
    }

    /// Removes ranges from the row but not from the disk, because they failed verification or are orphaned. Bytes
    /// reported after this call are claimed again.
    package func unclaim(_ file: SparseFile, _ ranges: [ByteRange]) {
        guard let name = file.name, !ranges.isEmpty else { return }
        file.cipher?.release(ranges)
        add { $0.cut(file, name.serial, ranges, makingHoles: false) }
    }

    /// The current commit lag, and the longest one so far.
    package var commitLag: CommitLag {
        pending.withLock { losses.window(pending: $0.byteCount, since: $0.waitingSince) }
    }

    /// Returns when everything reported before the call is durable. If it throws, the uncommitted work stays pending,
    /// except bytes that the disk failed to sync.
    package func flush() async throws(CacheError) {
        try await withCheckedContinuation { continuation in
            commitNext { continuation.resume(returning: $0) }
        }.get()
    }

    /// As `flush`, but returns after `limit` at the latest; the commit then goes on without the caller. For lists,
    /// which may lack the latest changes: a commit takes long while a large job reports many new assets.
    package func flush(within limit: Duration, clock: any Clock<Duration>) async throws(CacheError) {
        let (outcomes, outcome) = AsyncStream<Result<Void, CacheError>>.makeStream()
        commitNext { outcome.yield($0) }
        let made = await withTaskGroup(of: Result<Void, CacheError>?.self) { group in
            group.addTask { await outcomes.first { _ in true } }
            group.addTask {
                try? await clock.sleep(for: limit)  // throws only if cancelled
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        try made?.get()
    }

    /// Starts a commit, and passes its outcome to `served`. One commit serves all callers that came before it began, so
    /// that many callers do not wait for one another.
    private func commitNext(_ served: @escaping @Sendable (Result<Void, CacheError>) -> Void) {
        let isFirst = flushers.withLock { flushers in
            flushers.append(served)
            return flushers.count == 1
        }
        guard isFirst else { return }
        queue.async { [self] in
            let served = flushers.withLock { flushers in
                defer { flushers = [] }
                return flushers
            }
            let outcome = commit()
            for caller in served { caller(outcome) }
        }
    }

    /// Returns when no commit is in progress. Blocks.
    func waitForCommit() { queue.sync {} }

    /// As `flush`, for callers that may block.
    func commitNow() throws(CacheError) { try queue.sync { commit() }.get() }

    /// Commits whenever a limit is reached, until the task is cancelled; then commits once more.
    package func run(clock: some Clock<Duration>) async {
        while !Task.isCancelled {
            await someWork.wait()
            if Task.isCancelled { break }
            // Waits for the interval or for a limit, whichever comes first.
            await withTaskGroup { group in
                group.addTask { try? await clock.sleep(for: self.limits.interval) }  // throws only if cancelled
                group.addTask { await self.muchWork.wait() }
                await group.next()
                group.cancelAll()
            }
            if await !commitLogged() {
                try? await clock.sleep(for: min(limits.interval, .seconds(2)))  // as above; backoff
            }
        }
        _ = await commitLogged()
    }

    /// Commits and logs a failure; returns whether the commit succeeded.
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

    /// Adds work and wakes the queue.
    private func add(_ change: (inout sending PendingWork) -> Void) {
        let isMuch = pending.withLock { work in
            change(&work)
            // A file with unsynced writes must keep its descriptor open: commit before half of the descriptor cache is
            // blocked.
            return work.byteCount >= limits.bytes || work.growth.count >= store.descriptors.limit / 2
        }
        someWork.open()
        if isMuch { muchWork.open() }
    }

    /// Performs one commit. Runs on `queue`.
    ///
    /// 1. The pending work and the uses are taken under the lock of `pending`, and deferred punches are retried.
    /// 2. Grown files and the directories of new files are synced. Bytes that cannot be synced are dropped from the work.
    /// 3. The catalog commits the rest. If that fails, the work is restored underneath the work reported meanwhile.
    /// 4. Files forget the checksums that the catalog now contains, and `spoiled` is called.
    /// 5. Orphaned files are unlinked and cut ranges are punched. A failure here loses only disk space.
    private func commit() -> Result<Void, CacheError> {
        someWork.close()
        muchWork.close()
        let begin = uptime()
        var work = pending.withLock { work in
            _ = uses.map { uses in
                work.use(uses)
                uses = [:]
            }
            let taken = work.take()
            losses.begin(taken)
            return taken
        }
        var failure = makeHeldHoles()
        guard !work.isEmpty else { return failure.map { .failure($0) } ?? .success(()) }
        failure = sync(&work) ?? failure
        do throws(CacheError) {
            failure = try syncNames(&work) ?? failure
            let written = work.growth.values.map { ($0.file, $0.file.writtenSums(in: $0.ranges)) }
            let made = try commitWithReserve(work)
            losses.end(isMade: true)
            committed(uptime() - begin)
            pending.withLock { $0.done() }
            for (file, sums) in written { file.committed(sums) }
            for (file, ranges) in made.spoiled {
                if let name = file.name { spoiled(name, ranges) }
            }
            failure = clear(work, made) ?? failure
        } catch {
            let earlier = work
            pending.withLock { work in
                work.restore(earlier)
                losses.end(isMade: false)
            }
            someWork.open()
            failure = error
        }
        return failure.map { .failure($0) } ?? .success(())
    }

    /// Retries the deferred punches of earlier commits. Returns the first failure.
    private func makeHeldHoles() -> CacheError? {
        let isReadByFormer = store.isReadByFormerProcess
        let (made, failure, isMore) = held.withLock { held in
            let (made, failure) = held.tryAgain(isReadByFormer: isReadByFormer)
            return (made, failure, !held.isEmpty)
        }
        if isMore { someWork.open() }
        for (file, bytes) in made where bytes > 0 { freed(file, bytes) }
        return failure
    }

    /// Commits; on a full disk first releases the emergency reserve, if the batch frees space. If that is not enough,
    /// the files of removed assets are unlinked before their rows are deleted.
    private func commitWithReserve(_ work: PendingWork) throws(CacheError) -> Catalog.Committed {
        do throws(CacheError) {
            return try store.catalog.commit(work)
        } catch {
            guard error.code == .storageFull, work.frees else { throw error }
            if try store.reserve.release(), let committed = try committedIfRoom(work) { return committed }
            guard try store.unlinkEarly(work.removals) else { throw error }
            return try store.catalog.commit(work)
        }
    }

    /// Commits; returns nil if the disk is full.
    private func committedIfRoom(_ work: PendingWork) throws(CacheError) -> Catalog.Committed? {
        do throws(CacheError) {
            return try store.catalog.commit(work)
        } catch  where error.code == .storageFull {
            return nil
        }
    }

    /// Unlinks the orphaned files, punches the cut ranges, and restores the emergency reserve. Returns the first
    /// failure; a failure does not stop the other steps.
    private func clear(_ work: PendingWork, _ made: Catalog.Committed) -> CacheError? {
        var failure: CacheError?
        for name in made.orphans {
            do throws(CacheError) {
                if made.purged.contains(name) {
                    purged(try store.unlinkMeasured(name))
                } else {
                    try store.unlink(name)
                }
            } catch  where error.code == .overloaded {
                failure = failure ?? error
                pending.withLock { $0.abandon(name) }
                someWork.open()
            } catch {
                failure = failure ?? error  // the next start removes the file
            }
        }
        let isReadByFormer = store.isReadByFormerProcess
        for cut in work.cuts.values {
            let outcome: CacheError? = held.withLock { held in
                do throws(CacheError) {
                    try held.punch(cut.file, cut.holes, isReadByFormer: isReadByFormer)
                } catch { return error }
                return nil
            }
            failure = failure ?? outcome
        }
        if !held.withLock({ $0.isEmpty }) { someWork.open() }
        do throws(CacheError) { try store.reserve.keep() } catch { failure = failure ?? error }
        return failure
    }
}
