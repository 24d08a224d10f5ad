package import CacheCore
import Logging

/// Purges that take effect at once and delete their assets later.
extension Store {
    /// As `Catalog.mark`. On a full disk the emergency reserve is released first.
    package func mark(
        _ purge: PurgeRecord, _ versions: [AssetVersion], at now: Timestamp
    ) async throws(CacheError) -> PurgeRecord {
        try await withReserve { () async throws(CacheError) in try await catalog.mark(purge, versions, at: now) }
    }

    /// Removes the rows of up to `limit` assets that purges have selected, then their files. Returns the assets and the
    /// disk usage of the files; no assets if none is left.
    ///
    /// A file that cannot be removed is logged; the next start removes it.
    package func removePurged(limit: Int) async throws(CacheError) -> (assets: [RemovedAsset], diskBytes: Int64) {
        let removed = try await withReserve { () async throws(CacheError) in
            try await catalog.removePurged(limit: limit)
        }
        defer { catalog.purged.end(removed) }
        let bytes = try await onDiskQueue { () throws(CacheError) -> Int64 in
            var bytes: Int64 = 0
            for name in removed.compactMap(\.file) {
                do throws(CacheError) {
                    bytes += try self.unlinkMeasured(name)
                } catch {
                    self.logger.error(
                        "the file of a purged asset cannot be removed",
                        metadata: ["file": "\(name)", "error": "\(error)"])
                }
            }
            try self.reserve.keep()
            return bytes
        }
        return (removed, bytes)
    }

    /// Runs `write`, and once more if the disk is full and the emergency reserve could be released.
    private func withReserve<Value>(
        _ write: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        do throws(CacheError) {
            return try await write()
        } catch {
            guard error.code == .storageFull, try reserve.release() else { throw error }
            return try await write()
        }
    }
}
