import CacheCore
import CacheStore
import NIOCore
import Synchronization

/// Reads of bytes that must be verified against their checksums, and recovery from bytes that cannot be read.
extension ContentRead {
    /// The bytes of `chunk`, verified if required; nil if they were corrupt or lost, in which case the ledger fetches
    /// them again.
    ///
    /// Throws the disk's error if it persists.
    func bytes(_ chunk: ByteRange, of file: SparseFile) async throws(CacheError) -> ByteBuffer? {
        let (asset, threads) = (asset, asset.context.diskThreads)
        do throws(CacheError) {
            guard asset.toCheck(chunk) != nil else {
                // An eviction may punch the range during the read. The bytes count only if the ledger has lost none
                // meanwhile.
                let before = asset.look { $0.ledger.extents.contains(chunk) ? $0.ledger.losses : nil }
                let buffer = try await threads.read(chunk, of: file)
                return before != nil && asset.look { $0.ledger.losses } == before ? buffer : nil
            }
            let buffer = try await threads.run { try asset.readChecked(chunk, of: file) }
            if buffer != nil { return buffer }
        } catch {
            try lost(chunk, of: file, error)
            return nil
        }
        try met(CacheError(.storageCorrupt, "The disk keeps damaging data: check the disk."))
        return nil
    }

    /// Handles a failed read of the store's own file: invalidates the chunk, so that it is fetched again. Throws
    /// `error` if it is of another kind, and the asset's new error if the file has been removed.
    private func lost(_ chunk: ByteRange, of file: SparseFile, _ error: CacheError) throws(CacheError) {
        guard error.code == .storageCorrupt, file.name != nil, !asset.isForeign else { throw error }
        if file.hasVanished { throw asset.vanished(file) }
        try met(error)
        asset.invalidate([chunk], of: file)
    }

    /// Counts a failed read of the disk; throws `error` after `mostBad` failures, so that the read ends.
    private func met(_ error: CacheError) throws(CacheError) {
        let count = state.withLock { state in
            state.badCount += 1
            return state.badCount
        }
        if count > Self.mostBad { throw error }
    }

    /// The maximum number of unusable chunks per read.
    private static let mostBad = 64

    /// Reads and verifies `chunk` on a disk thread, then calls `wake`.
    func readOnDiskThread(_ chunk: ByteRange, of file: SparseFile, wake: @escaping @Sendable () -> Void) {
        let asset = asset
        asset.context.diskThreads.submit { [self] isOpen in
            guard isOpen else {
                let error = CacheError(.shuttingDown, "The service is shutting down.")
                return finishLate(chunk, of: file, .failure(error), wake: wake)
            }
            do throws(CacheError) {
                let bytes = try asset.readChecked(chunk, of: file)
                if bytes == nil {
                    try met(CacheError(.storageCorrupt, "The disk keeps damaging data: check the disk."))
                }
                finishLate(chunk, of: file, .success(bytes), wake: wake)
            } catch {
                finishLate(chunk, of: file, .failure(error), wake: wake)
            }
        }
    }

    /// Stores the result of a disk operation for the next call of `nextWithoutBlocking`, and calls `wake`. Bytes that
    /// are nil were corrupt: the next call asks the ledger again.
    func finishLate(
        _ chunk: ByteRange, of file: SparseFile, _ result: Result<ByteBuffer?, CacheError>,
        wake: @Sendable () -> Void
    ) {
        var result = result
        if case .failure(let error) = result {
            do throws(CacheError) {
                try lost(chunk, of: file, error)
                result = .success(nil)
            } catch {
                result = .failure(error)
            }
        }
        let late: Result<(chunk: ByteRange, bytes: ByteBuffer), CacheError>? =
            switch result {
            case .success(let bytes?): .success((chunk, bytes))
            case .success(nil): nil
            case .failure(let error): .failure(error)
            }
        state.withLock { $0.late = late }
        wake()
    }
}
