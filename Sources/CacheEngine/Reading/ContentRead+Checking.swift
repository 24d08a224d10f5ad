import CacheCore
import CacheStore
import NIOCore
import Synchronization

/// What is done about bytes on disk that must be checked, or cannot be read.
extension ContentRead {
    /// The bytes of `chunk`, checked where they must be; nil where they were bad, and are fetched again.
    func bytes(_ chunk: ByteRange, of file: SparseFile) async throws(CacheError) -> ByteBuffer? {
        let (asset, threads) = (asset, asset.context.diskThreads)
        do throws(CacheError) {
            guard asset.toCheck(chunk) != nil else {
                // What is given up meanwhile may be a hole before it is read.
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
        try met(CacheError(.storageCorrupt, "The disk keeps damaging what is written."))
        return nil
    }

    /// What the disk could not read is fetched again, where it is the store's.
    private func lost(_ chunk: ByteRange, of file: SparseFile, _ error: CacheError) throws(CacheError) {
        guard error.code == .storageCorrupt, file.name != nil, !asset.isForeign else { throw error }
        if file.hasVanished { throw asset.vanished(file) }
        try met(error)
        asset.spoil([chunk], of: file)
    }

    /// A read that meets bad bytes again and again comes to its end.
    private func met(_ error: CacheError) throws(CacheError) {
        let count = state.withLock { state in
            state.badCount += 1
            return state.badCount
        }
        if count > Self.mostBad { throw error }
    }

    private static let mostBad = 64

    /// Reads and checks on a disk thread.
    func readLate(_ chunk: ByteRange, of file: SparseFile, wake: @escaping @Sendable () -> Void) {
        let asset = asset
        asset.context.diskThreads.submit { [self] isOpen in
            guard isOpen else {
                let error = CacheError(.shuttingDown, "The service is shutting down.")
                return finishLate(chunk, of: file, .failure(error), wake: wake)
            }
            do throws(CacheError) {
                let bytes = try asset.readChecked(chunk, of: file)
                if bytes == nil { try met(CacheError(.storageCorrupt, "The disk keeps damaging what is written.")) }
                finishLate(chunk, of: file, .success(bytes), wake: wake)
            } catch {
                finishLate(chunk, of: file, .failure(error), wake: wake)
            }
        }
    }

    /// Nil as the bytes: they were bad, and are to be asked for again.
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
