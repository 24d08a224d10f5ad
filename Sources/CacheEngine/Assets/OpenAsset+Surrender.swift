import CacheCore
import CacheStore
import Logging
import Synchronization

/// What an asset has given up, and waits to be taken off the disk.
struct Surrender {
    let asset: OpenAsset
    let file: SparseFile
    /// What was asked for, and the bytes of it that go.
    let ranges: [ByteRange]
    let runs: [ByteRange]
    /// Whether nothing is left that would be worth the asset's record.
    let isAll: Bool
}

extension OpenAsset {
    /// The ranges without the parts behind the asset's end.
    func cutOff(_ ranges: [ByteRange]) -> [ByteRange] {
        guard let length = look({ $0.ledger.length }) else { return ranges }
        return ranges.map { $0.cutOff(at: length) }
    }

    /// Gives up what is on disk of the ranges and not leased; nil where that is nothing.
    func surrender(_ ranges: [ByteRange]) -> Surrender? {
        reads.withLock { $0.forget() }
        // Where no holes can be made, only a whole file gives its space back.
        let ranges = context.store.holes.canBePunched ? ranges : [0..<Int64.max]
        let (surrender, bare) = change { state in
            let file = state.file.flatMap { $0.name == nil ? nil : $0 }  // a transient file's bytes go with its reader
            let runs = file == nil ? [] : ranges.flatMap { state.ledger.surrender($0) }
            let known = 0..<(state.ledger.length ?? 0)
            let bare = ranges.map { $0.clamped(to: known) }.filter { state.ledger.vacancies(in: $0) == [$0] }
            let isAll = state.ledger.extents.isEmpty && state.record?.isPinned == false
            let surrender = file.map { Surrender(asset: self, file: $0, ranges: ranges, runs: runs, isAll: isAll) }
            return ((runs.isEmpty ? nil : surrender, bare), [])
        }
        // What has nothing on disk is no victim any more, whatever was counted of it.
        context.space.with { ledger in for range in bare { ledger.gone(range, of: id) } }
        return surrender
    }

    /// What found no room on the disk, or must not stay there, takes none any longer than its readers need it: gives up what
    /// all of them are past of `ranges`, where that is enough to be worth it. Blocks where they are on the disk.
    func passed(_ ranges: ByteRangeSet, of file: SparseFile, isOnDisk: Bool) {
        giveUp(of: file, isOnDisk: isOnDisk) { $0.surrenderPassed(of: ranges, atLeast: Self.leastPassed) }
    }

    private static let leastPassed: Int64 = 512 << 10

    /// Gives up what is in memory in place of the disk and nobody is about to send.
    func relieveMemory(of file: SparseFile) {
        let spilled = file.spilled.runs
        giveUp(of: file, isOnDisk: false) { ledger in spilled.flatMap { ledger.surrender($0) } }
    }

    private func giveUp(of file: SparseFile, isOnDisk: Bool, _ surrender: (inout FillLedger) -> [ByteRange]) {
        let runs: [ByteRange] = change { state in (state.file === file ? surrender(&state.ledger) : [], []) }
        guard !runs.isEmpty else { return }
        if isOnDisk {
            // What cannot be given back goes with the file.
            do throws(CacheError) { try file.giveBack(ByteRangeSet(runs)) } catch {
                context.logger.warning("a transient file gives nothing back", metadata: ["error": "\(error)"])
            }
        } else {
            context.commits.cut(file, runs)  // fetched once more, some may be claimed as well
            file.unspill(runs)
        }
        gaveUp(runs, of: file, isOnDisk: isOnDisk)
        context.space.ringIfAwaited()
    }

    /// Has the ledger know what is on disk, all anew; answers false where that is not the asset's any more. Under its lock, or
    /// what arrives or goes just now would be forgotten again.
    @discardableResult
    func count(lastUse: Timestamp) -> Bool {
        look { state in
            guard !state.isDisowned else { return false }
            context.space.with { $0.count(state.ledger.kept.runs, of: id, from: state.owners, lastUse: lastUse) }
            return true
        }
    }

    /// The file gave bytes back to the disk that were surrendered before. Lets the asset go.
    func freed(_ bytes: Int64, of file: FileName) {
        defer { context.openAssets.release(self) }
        change { state in
            if state.file?.name == file { state.freed(bytes) }
            return ((), [])
        }
    }

    /// The runs are off the disk.
    func gaveUp(_ runs: [ByteRange], of file: SparseFile, isOnDisk: Bool = true) {
        let (grid, current) = (context.space.grid, context.openAssets[id] ?? self)
        // Before they may come to this asset again. To one that was begun in its place they may have come by now: what is
        // counted of those segments is its.
        current.look { state in
            for run in file.name == nil ? [] : runs {
                for part in grid.indices(of: run).map(grid.run)
                where current === self || state.ledger.extents.runs(in: part).isEmpty {
                    context.space.with { $0.gone(part.clamped(to: run), of: id) }
                }
            }
        }
        // Of what was in memory the disk knows nothing, and to ask it may mean waiting.
        let shrunk = change { state in (isOnDisk ? -state.measure(file) : 0, state.ledger.left(runs)) }
        context.space.used(changedBy: -shrunk)
        sweep(file)
    }

    /// What is on the disk and nobody's is taken off it, where no fill is just writing it anew.
    func sweep(_ file: SparseFile) {
        guard look({ $0.ledger.hasUnclaimed && $0.file === file }) else { return }
        let runs = change { state in (state.ledger.surrenderUnclaimed(), []) }
        guard !runs.isEmpty else { return }
        context.openAssets.retain(self)
        context.upkeep.add(.unclaimed(self, file, runs))
    }
}
