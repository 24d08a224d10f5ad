import CacheCore
import CacheStore
import Logging
import NIOCore
import Synchronization

extension OpenAsset.State {
    /// Whether some of its bytes are in memory alone, because the disk had no room for them.
    var isSpilled: Bool { file?.isSpilled ?? false }

    /// Whether bytes of `range` are to be compared with their sums before they are sent.
    func mustCheck(_ range: ByteRange) -> Bool {
        guard let file, file.name != nil else { return false }
        if (record?.verify ?? target.settings.verification) == .always { return true }
        return !unchecked.isEmpty && unchecked.byteCount(in: range) > 0
    }
}

extension OpenAsset {
    /// The first bytes of `chunk` that are to be checked together; nil where they may be sent as they are.
    func toCheck(_ chunk: ByteRange) -> ByteRange? {
        look { $0.mustCheck(chunk) } ? BlockSums.cut(chunk.prefix(BlockSums.blockBytes)).first : nil
    }

    /// Bytes of one block, compared with their sums; nil where they are not what they were: they are given up. Blocks.
    func readChecked(_ range: ByteRange, of file: SparseFile) throws(CacheError) -> ByteBuffer? {
        var buffer = context.diskThreads.memory(Int(range.length))
        var outcome = Result<CheckedBytes, CacheError>.success(.bad([range]))
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(range.length)) { space in
            let wanted = UnsafeMutableRawBufferPointer(rebasing: space[..<Int(range.length)])
            do throws(CacheError) {
                outcome = .success(try context.commits.read(range, of: file, into: wanted))
            } catch {
                outcome = .failure(error)
            }
            return wanted.count
        }
        switch try outcome.get() {
        case .right(let runs):
            passed(runs, of: file)
            return buffer
        case .bad(let runs):
            spoil(runs, of: file)
            return nil
        }
    }

    /// These bytes are what they were.
    private func passed(_ runs: [ByteRange], of file: SparseFile) {
        let isAll = change { state in
            guard state.file === file, !state.unchecked.isEmpty else { return (false, []) }
            for run in runs { state.unchecked.remove(run) }
            return (state.unchecked.isEmpty, [])
        }
        if isAll, let name = file.name { context.upkeep.add(.checked(name)) }
    }

    /// These bytes are not what was written: they are given up, leases or not, counted, and taken off the disk, where no fill is
    /// just writing them anew; whoever wants them waits, and has them fetched again.
    func spoil(_ runs: [ByteRange], of file: SparseFile) {
        let gone = change { state -> ([ByteRange], [FillLedger.Action]) in
            guard state.file === file else { return ([], []) }
            let gone = runs.flatMap { state.ledger.spoil($0) }
            context.commits.disclaim(file, gone)
            return (gone, [])
        }
        guard !gone.isEmpty else { return }
        reads.withLock { $0.forget() }
        context.evictionLog.note(.corrupt, gone, of: target)
        context.counters.spoiled(blocks: gone.flatMap(BlockSums.cut).count, bytes: gone.byteCount)
        for run in gone {
            context.logger.error(
                "bytes on disk are not what was written; they are fetched again when they are wanted",
                metadata: ["asset": "\(id)", "offset": "\(run.lowerBound)", "length": "\(run.length)"])
        }
        sweep(file)
    }

    /// All bytes of the file have been read: they are offered with what they sum up to, or given up where their upstream has
    /// stated something else. Nil where they are no longer the asset's, or not all there is of it.
    func summedUp(_ tally: DigestTally, of file: SparseFile) -> Bool? {
        let verdict = change { state -> ((isRight: Bool, runs: [ByteRange])?, [FillLedger.Action]) in
            guard state.file === file, let headers = state.record?.generation.headers,
                tally.byteCount == state.ledger.length
            else { return (nil, []) }
            let stated = StatedDigest.of(headers)
            guard !tally.differs(from: stated) else { return ((false, state.ledger.extents.runs), []) }
            if headers["Repr-Digest"] == nil {
                state.record?.generation.headers.set("Repr-Digest", tally.field)
                refreshRow(state)
            }
            return ((true, []), [])
        }
        guard let verdict, !verdict.isRight else { return verdict?.isRight }
        context.logger.error(
            "an asset is not what its upstream's digest says; it is fetched again when it is wanted",
            metadata: ["asset": "\(id)", "origin": "\(target.originName)"])
        spoil(verdict.runs, of: file)
        return false
    }

    /// The catalog has found that bytes of the file of that name are not what was written, and claims them no more. Lets the
    /// asset go.
    func spoiled(_ runs: [ByteRange], of name: FileName) {
        defer { context.openAssets.release(self) }
        if let file = look({ $0.file }), file.name == name { spoil(runs, of: file) }
    }
}
