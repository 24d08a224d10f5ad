import CacheCore
import CacheStore
import NIOCore

/// Reads of bytes that must be verified against their checksums, and recovery from bytes that cannot be read.
extension ContentRead {
    /// The bytes of `chunk`, verified if required; nil if they were corrupt or lost, in which case the ledger fetches
    /// them again.
    ///
    /// Throws the disk's error if it persists.
    func bytes(_ chunk: ByteRange, of file: SparseFile) async throws(CacheError) -> ByteBuffer? {
        switch try await asset.storedBytes(chunk, of: file) {
        case .bytes(let buffer): return buffer
        case .evicted: return nil
        case .unusable(let error):
            try countUnusable(error)
            return nil
        }
    }

    /// Counts a failed read of the disk; throws `error` after too many failures, so that the read ends.
    private func countUnusable(_ error: CacheError) throws(CacheError) {
        let count = state.withLock { state in
            state.badCount += 1
            return state.badCount
        }
        if count > OpenAsset.mostUnusable { throw error }
    }

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
                if bytes == nil { try countUnusable(OpenAsset.damaged) }
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
                try asset.invalidateUnreadable(chunk, of: file, error)
                try countUnusable(error)
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
