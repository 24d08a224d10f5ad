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

    let store: Store
    private let limits: Limits
    let lost: @Sendable (FileName, ByteRangeSet) -> Void
    private let spoiled: @Sendable (FileName, [ByteRange]) -> Void
    private let freed: @Sendable (FileName, Int64) -> Void
    let pending = Mutex(PendingWork())
    /// Uses that are not among it yet; who has both locks takes the one of `pending` first.
    private let uses = Shards { [AssetID: PendingWork.Use]() }
    private let held = Mutex(HeldHoles())
    private let losses = LossMeter()
    /// Commits are made here, one after the other.
    private let queue = DispatchQueue(label: "larder.commits", qos: .userInitiated)
    private let someWork = Gate()
    private let muchWork = Gate()

    /// - Parameter lost: told, on a thread of the queue's own, of bytes that the disk failed to sync. They are never
    ///   committed, and the file takes no more writes: the reader's picture of it must give them up.
    /// - Parameter spoiled: told, likewise, of bytes that proved not to be what they were claimed to be; they are not in
    ///   the catalog any more.
    /// - Parameter freed: told, likewise, how many bytes a file gave back to the disk later than it was to.
    package init(
        store: Store, limits: Limits = Limits(),
        lost: @escaping @Sendable (FileName, ByteRangeSet) -> Void = { _, _ in },
        spoiled: @escaping @Sendable (FileName, [ByteRange]) -> Void = { _, _ in },
        freed: @escaping @Sendable (FileName, Int64) -> Void = { _, _ in }
    ) {
        self.store = store
        self.limits = limits
        self.lost = lost
        self.spoiled = spoiled
        self.freed = freed
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

    /// Bytes that have just been written, and stay (`SparseFile.kept`). Without effect where the file is not, or no longer, that
    /// of a row.
    package func grew(_ file: SparseFile, _ runs: [ByteRange]) {
        guard let name = file.name, !runs.isEmpty else { return }
        add { work in for run in runs { work.grow(file, name.serial, run) } }
    }

    /// Uses of an asset; without effect where it has no row. Every read comes here: nothing is taken that all share, but by
    /// the first one after a commit.
    package func touched(_ asset: AssetID, at time: Timestamp, hits: Int64 = 1) {
        let isFirst = uses[asset].value.withLock { uses in
            let use = PendingWork.Use(at: time, hits: hits)
            defer { uses[asset] = uses[asset]?.and(use) ?? use }
            return uses.isEmpty
        }
        if isFirst { someWork.open() }
    }

    /// Takes an asset out: what is pending for it at once, then its row, then, it being gone for good, its file. Bytes that
    /// old readers still hold open stay readable for them.
    package func discard(_ asset: AssetID) {
        add { work in
            work.remove(asset)
            uses[asset].value.withLock { $0[asset] = nil }
        }
    }

    /// Whether the asset's row is on its way out: it must not be loaded any more.
    package func isTakingOut(_ asset: AssetID) -> Bool {
        pending.withLock { $0.removals.contains(asset) || $0.removing.contains(asset) }
    }

    /// Takes the name of a file away that no row is to have.
    package func abandon(_ file: SparseFile) {
        guard let name = file.name else { return }
        add { $0.abandon(name) }
    }

    /// Takes runs of bytes out: what is pending of them at once, then from the rows, then from the disk. Bytes that are
    /// written there after this call, and reported, are spared. Without effect on a transient file.
    package func cut(_ file: SparseFile, _ ranges: [ByteRange]) {
        guard let name = file.name else { return }
        file.doom(ranges)
        add { $0.cut(file, name.serial, ranges, makingHoles: true) }
    }

    /// Takes runs of bytes out of the rows, and leaves them on the disk: they are not what was claimed, or nobody's. Bytes that
    /// are reported after this call are claimed again.
    package func disclaim(_ file: SparseFile, _ ranges: [ByteRange]) {
        guard let name = file.name, !ranges.isEmpty else { return }
        add { $0.cut(file, name.serial, ranges, makingHoles: false) }
    }

    /// What a crash would lose at this moment, and would have at the worst one.
    package var lossWindow: LossWindow {
        pending.withLock { losses.window(pending: $0.byteCount, since: $0.waitingSince) }
    }

    /// Returns when everything that was reported before the call is durable. An error says that some of it is not yet;
    /// that stays pending, except bytes the disk failed to sync.
    package func flush() async throws(CacheError) {
        let outcome = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.commit()) }
        }
        try outcome.get()
    }

    /// As `flush`, for those who may wait for the disk. Blocks.
    func commitNow() throws(CacheError) { try queue.sync { commit() }.get() }

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
            let committed = try commitWithReserve(work)
            losses.end(isMade: true)
            pending.withLock { $0.done() }
            for (file, sums) in written { file.committed(sums) }
            for (file, ranges) in committed.spoiled {
                if let name = file.name { spoiled(name, ranges) }
            }
            failure = clear(work, committed.orphans) ?? failure
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

    /// Those of earlier commits that could not be made then.
    private func makeHeldHoles() -> CacheError? {
        let (made, failure, isMore) = held.withLock { held in
            let (made, failure) = held.tryAgain()
            return (made, failure, !held.isEmpty)
        }
        if isMore { someWork.open() }
        for (file, bytes) in made where bytes > 0 { freed(file, bytes) }
        return failure
    }

    /// On a full disk the reserve makes room: what frees space must be committed first. Where there is none either, the files
    /// of assets that go whole go before their rows.
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

    /// Nil where the disk has no room for the commit.
    private func committedIfRoom(_ work: PendingWork) throws(CacheError) -> Catalog.Committed? {
        do throws(CacheError) {
            return try store.catalog.commit(work)
        } catch  where error.code == .storageFull {
            return nil
        }
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
            let outcome: CacheError? = held.withLock { held in
                do throws(CacheError) { try held.punch(cut.file, cut.holes) } catch { return error }
                return nil
            }
            failure = failure ?? outcome
        }
        if !held.withLock({ $0.isEmpty }) { someWork.open() }
        do throws(CacheError) { try store.reserve.keep() } catch { failure = failure ?? error }
        return failure
    }
}
