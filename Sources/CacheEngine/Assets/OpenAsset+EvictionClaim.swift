import CacheCore
import CacheStore
import Logging

/// Evicting bytes of one asset: withdrawn from its readers, and still to be removed from the disk.
struct EvictionClaim {
    let asset: OpenAsset
    let file: SparseFile
    /// The ranges that the caller requested.
    let ranges: [ByteRange]
    /// The evicting runs within `ranges`.
    let runs: [ByteRange]
    /// Whether no extent remains and the asset is not pinned, so that its record can be removed as well.
    let isAll: Bool
}

/// Eviction of the asset's bytes from disk and memory.
extension OpenAsset {
    /// Clips the ranges to the asset's length, if it is known.
    func cutOff(_ ranges: [ByteRange]) -> [ByteRange] {
        guard let length = look({ $0.ledger.length }) else { return ranges }
        return ranges.map { $0.cutOff(at: length) }
    }

    /// Starts the eviction of the bytes of `ranges` that are on disk, except those that readers hold or fills write.
    /// Returns nil if no byte can be evicted.
    func beginEviction(_ ranges: [ByteRange]) -> EvictionClaim? {
        reads.withLock { $0.forget() }
        // Without hole punching, only the removal of a whole file frees disk space.
        let ranges = context.store.holes.canBePunched ? ranges : [0..<Int64.max]
        let (claim, bare) = change { state in
            let file = state.file.flatMap { $0.name == nil ? nil : $0 }  // a transient file's bytes go with its readers
            let runs = file == nil ? [] : ranges.flatMap { state.ledger.beginEviction($0) }
            let known = 0..<(state.ledger.length ?? 0)
            let bare = ranges.map { $0.clamped(to: known) }.filter { state.ledger.vacancies(in: $0) == [$0] }
            let isAll = state.hasNothingToKeep
            let claim = file.map {
                EvictionClaim(asset: self, file: $0, ranges: ranges, runs: runs, isAll: isAll)
            }
            return ((runs.isEmpty ? nil : claim, bare), [])
        }
        // A range without bytes on disk is no victim; this corrects the count of the space ledger.
        context.space.with { ledger in for range in bare { ledger.gone(range, of: id) } }
        return claim
    }

    /// Removes the asset with its row if no extent remains and it is not pinned. Returns false if it stays, or has other
    /// users than the caller: the last of them removes it.
    @discardableResult
    func removeIfEmpty() -> Bool {
        // Under the lock, no fill can add bytes before the asset is detached.
        look { $0.hasNothingToKeep && context.openAssets.detachWhenUnused(self) }
    }

    /// Releases bytes of `ranges` that all readers have passed, if they amount to 512 KiB. Used for transient files,
    /// and for spilled bytes (`isOnDisk` is false). Blocks if the bytes are on the disk.
    func passed(_ ranges: ByteRangeSet, of file: SparseFile, isOnDisk: Bool) {
        giveUp(of: file, isOnDisk: isOnDisk) { $0.evictConsumed(of: ranges, atLeast: Self.leastPassed) }
    }

    /// The smallest number of bytes that is worth a release.
    private static let leastPassed: Int64 = 512 << 10

    /// Releases spilled bytes that no reader is about to send.
    func relieveMemory(of file: SparseFile) {
        let spilled = file.spilled.runs
        giveUp(of: file, isOnDisk: false) { ledger in spilled.flatMap { ledger.beginEviction($0) } }
    }

    /// Releases the runs that `claim` selects: as holes in a transient file, or from memory.
    private func giveUp(of file: SparseFile, isOnDisk: Bool, _ claim: (inout FillLedger) -> [ByteRange]) {
        let runs: [ByteRange] = change { state in (state.file === file ? claim(&state.ledger) : [], []) }
        guard !runs.isEmpty else { return }
        if isOnDisk {
            // On failure the space is released with the file.
            do throws(CacheError) { try file.giveBack(ByteRangeSet(runs)) } catch {
                context.logger.warning("a transient file cannot release disk space", metadata: ["error": "\(error)"])
            }
        } else {
            context.commits.cut(file, runs)  // refetched after a spill, a part may be claimed in the catalog
            file.unspill(runs)
        }
        finishEviction(runs, of: file, isOnDisk: isOnDisk)
        context.space.notifyIfAwaited()
    }

    /// Replaces the asset's bytes in the space ledger by the ranges that occupy disk. Returns false if the asset no
    /// longer owns its row. Runs under the asset's lock; otherwise a concurrent arrival or eviction would be
    /// overwritten.
    @discardableResult
    func count(lastUse: Timestamp) -> Bool {
        look { state in
            guard state.ownsRow else { return false }
            context.space.with { $0.count(state.ledger.kept.runs, of: id, from: state.owners, lastUse: lastUse) }
            return true
        }
    }

    /// Records bytes that the file returned to the disk later than their eviction (deferred punches). Releases the
    /// caller's hold on the asset.
    func freed(_ bytes: Int64, of file: FileName) {
        defer { context.openAssets.release(self) }
        change { state in
            if state.file?.name == file { state.freed(bytes) }
            return ((), [])
        }
    }

    /// Ends the eviction of runs that are off the disk; readers may refetch them.
    func finishEviction(_ runs: [ByteRange], of file: SparseFile, isOnDisk: Bool = true) {
        let (grid, current) = (context.space.grid, context.openAssets[id] ?? self)
        // The space ledger is updated before the runs can be fetched again. An asset that has replaced this one may
        // already have bytes in the same segments; their count stays.
        current.look { state in
            for run in file.name == nil ? [] : runs {
                for part in grid.indices(of: run).map(grid.run)
                where current === self || state.ledger.extents.runs(in: part).isEmpty {
                    context.space.with { $0.gone(part.clamped(to: run), of: id) }
                }
            }
        }
        // The disk has no record of spilled bytes, and measuring the file can block.
        let shrunk = change { state in (isOnDisk ? -state.measure(file) : 0, state.ledger.left(runs)) }
        context.space.used(changedBy: -shrunk)
        sweep(file)
    }

    /// Queues the removal of orphaned bytes from the disk, except those that a fill may be rewriting.
    func sweep(_ file: SparseFile) {
        guard look({ $0.ledger.hasUnclaimed && $0.file === file }) else { return }
        let runs = change { state in (state.ledger.evictOrphaned(), []) }
        guard !runs.isEmpty else { return }
        context.openAssets.retain(self)
        context.maintenance.add(.orphaned(self, file, runs))
    }
}
