import CacheCore
import CacheStore
import Logging
import NIOCore

extension OpenAsset.State {
    /// Whether some bytes are in memory only, because the disk had no space for them (spilled bytes).
    var isSpilled: Bool { file?.isSpilled ?? false }

    /// Whether bytes of `range` must be verified against their checksums before they are sent.
    func mustCheck(_ range: ByteRange) -> Bool {
        guard let file, file.name != nil else { return false }
        if (record?.verify ?? target.settings.verification) == .always { return true }
        return !unchecked.isEmpty && unchecked.byteCount(in: range) > 0
    }
}

/// Verification of stored bytes against their checksums and digests.
extension OpenAsset {
    /// The first part of `chunk` that is verified as a unit, at most one checksum block; nil if no byte needs
    /// verification.
    func toCheck(_ chunk: ByteRange) -> ByteRange? {
        look { $0.mustCheck(chunk) } ? BlockChecksums.cut(chunk.prefix(BlockChecksums.blockBytes)).first : nil
    }

    /// The result of a read of bytes that the ledger has stated to be on disk.
    enum StoredBytes {
        case bytes(ByteBuffer)
        /// They were evicted during the read.
        case evicted
        /// They are damaged or cannot be read, and were invalidated. A caller ends after ``mostUnusable`` such reads.
        case unusable(CacheError)
    }

    /// The number of unusable reads after which a reader ends with the error.
    static let mostUnusable = 64

    /// Reads `chunk` on a disk thread, and verifies it if required; a chunk that must be verified is a part of one
    /// block, see ``toCheck(_:)``. After `.evicted` and `.unusable` the ledger fetches the bytes again for their reader.
    ///
    /// Throws the errors of a read that another attempt cannot mend.
    func storedBytes(_ chunk: ByteRange, of file: SparseFile) async throws(CacheError) -> StoredBytes {
        let threads = context.diskThreads
        do throws(CacheError) {
            guard toCheck(chunk) != nil else {
                // An eviction may punch the range during the read. The bytes count only if the ledger has lost none
                // meanwhile.
                let before = look { $0.ledger.extents.contains(chunk) ? $0.ledger.losses : nil }
                let isLost = { before == nil || self.look { $0.ledger.losses } != before }
                do throws(CacheError) {
                    let buffer = try await threads.read(chunk, of: file)
                    return isLost() ? .evicted : .bytes(buffer)
                } catch  where isLost() { return .evicted }
            }
            if let buffer = try await threads.run({ try self.readChecked(chunk, of: file) }) { return .bytes(buffer) }
        } catch {
            try invalidateUnreadable(chunk, of: file, error)
            return .unusable(error)
        }
        return .unusable(Self.damaged)
    }

    /// The error for bytes that repeatedly do not match their checksums.
    static let damaged = CacheError(.storageCorrupt, "The disk keeps damaging data: check the disk.")

    /// Invalidates bytes of the store's own file that a read could not return, so that they are fetched again. Throws
    /// `error` if it is of another kind, and the asset's new error if the file has been removed.
    func invalidateUnreadable(
        _ chunk: ByteRange, of file: SparseFile, _ error: CacheError
    ) throws(CacheError) {
        guard error.code == .storageCorrupt, file.name != nil, !isForeign else { throw error }
        if file.hasVanished { throw vanished(file) }
        invalidate([chunk], of: file)
    }

    /// Reads bytes of one block and verifies their checksum. On a mismatch, invalidates the bytes and returns nil.
    /// Blocks.
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
            invalidate(runs, of: file)
            return nil
        }
    }

    /// Marks runs as verified. After the last unverified run, the maintenance queue records this in the catalog.
    private func passed(_ runs: [ByteRange], of file: SparseFile) {
        let isAll = change { state in
            guard state.file === file, !state.unchecked.isEmpty else { return (false, []) }
            for run in runs { state.unchecked.remove(run) }
            return (state.unchecked.isEmpty, [])
        }
        if isAll, let name = file.name { context.maintenance.add(.checked(name)) }
    }

    /// Invalidates runs with wrong contents, leased or not. Counts and logs them and removes them from the disk, except
    /// where a fill is rewriting them. Readers of these bytes wait for the refetch.
    func invalidate(_ runs: [ByteRange], of file: SparseFile) {
        let gone = change { state -> ([ByteRange], [FillLedger.Action]) in
            guard state.file === file else { return ([], []) }
            let gone = runs.flatMap { state.ledger.invalidate($0) }
            context.commits.unclaim(file, gone)
            return (gone, [])
        }
        guard !gone.isEmpty else { return }
        reads.withLock { $0.forget() }
        context.evictionLog.note(.corrupt, gone, of: target)
        context.counters.spoiled(blocks: gone.flatMap(BlockChecksums.cut).count, bytes: gone.byteCount)
        for run in gone {
            context.logger.error(
                "stored bytes failed their checksum and were discarded; they are refetched on demand",
                metadata: ["asset": "\(id)", "offset": "\(run.lowerBound)", "length": "\(run.length)"])
        }
        sweep(file)
    }

    /// Compares the digest of a completely read file with the digests that the upstream stated. A match adds a
    /// `Repr-Digest` field if the response had none. A mismatch invalidates all bytes.
    ///
    /// Returns whether the digests match; nil if the file is no longer the asset's file or was not read completely.
    func summedUp(_ tally: DigestAccumulator, of file: SparseFile) -> Bool? {
        let verdict = change { state -> ((isRight: Bool, runs: [ByteRange])?, [FillLedger.Action]) in
            guard state.file === file, let generation = state.record?.generation,
                tally.byteCount == state.ledger.length
            else { return (nil, []) }
            let stated = UpstreamDigest.of(generation)
            guard !tally.differs(from: stated) else { return ((false, state.ledger.extents.runs), []) }
            if generation.headers["Repr-Digest"] == nil, let field = tally.field {
                state.record?.generation.headers.set("Repr-Digest", field)
                refreshRow(state)
            }
            return ((true, []), [])
        }
        guard let verdict, !verdict.isRight else { return verdict?.isRight }
        context.logger.error(
            "a stored asset does not match its upstream's digest and was discarded; it is refetched on demand",
            metadata: ["asset": "\(id)", "origin": "\(target.originName)"])
        invalidate(verdict.runs, of: file)
        return false
    }

    /// Invalidates runs that the catalog found damaged and no longer claims, if the file is still in use. Releases the
    /// caller's hold on the asset.
    func spoiled(_ runs: [ByteRange], of name: FileName) {
        defer { context.openAssets.release(self) }
        if let file = look({ $0.file }), file.name == name { invalidate(runs, of: file) }
    }
}
