package import CacheCore
import Logging
import Synchronization

extension Store {
    /// An asset as it can be used: its row, and its extents as far as the file really has them. Nil where it is not
    /// known.
    ///
    /// What the row claims beyond the file's end, or of a file that is gone, is taken out of the catalog as well.
    package func load(_ id: AssetID) async throws(CacheError) -> LoadedAsset? {
        guard let stored = try await intactRow(of: id) else { return nil }
        guard let name = stored.file else {
            return LoadedAsset(record: stored.record, extents: ByteRangeSet(), file: nil)
        }
        let opened = try await onDiskQueue { () throws(CacheError) -> (SparseFile, Int64)? in
            guard let file = try self.openFile(name) else { return nil }
            return (file, try file.size())
        }
        guard let (file, size) = opened else {
            logger.warning("an asset's file is gone", metadata: ["file": "\(name)"])
            try await catalog.emptyRow(of: name, ifGone: layout.path(of: name), disk)
            return LoadedAsset(record: stored.record, extents: ByteRangeSet(), file: nil)
        }
        if let last = stored.extents.runs.last, last.upperBound > size {
            logger.warning("an asset's file is shorter than its extents", metadata: ["file": "\(name)"])
            try await catalog.cutRow(of: name, toEndOf: layout.path(of: name), disk)
            return try await load(id)
        }
        return LoadedAsset(
            record: stored.record, extents: stored.extents, file: file,
            isSuspect: isSuspect(name, checkedRun: stored.checkedRun))
    }

    /// Takes an asset's row out that is not what was written; answers whether it was such a one.
    package func discardIfDamaged(_ id: AssetID) async throws(CacheError) -> Bool {
        let isDamaged = try await catalog.discardDamagedRow(of: id)
        if isDamaged { damagedRows.add(1, ordering: .relaxed) }
        if isDamaged { logger.error("an asset's row is damaged and is taken out", metadata: ["asset": "\(id)"]) }
        return isDamaged
    }

    /// Whether the service ended out of order since the file's bytes were made or checked.
    func isSuspect(_ name: FileName, checkedRun: Int64) -> Bool {
        max(name.serial >> Self.serialBits, checkedRun) < catalog.suspectRun
    }

    /// Changes what an administrator sets, as `Catalog.updateAsset`; of an asset whose row is damaged, and taken out, nothing is
    /// known either.
    package func updateAsset(
        _ id: AssetID, _ change: AssetChange, maxPinnedBytes: Int64? = nil
    ) async throws(CacheError) -> StoredAsset? {
        try await intact(id) { () async throws(CacheError) in
            try await catalog.updateAsset(id, change, maxPinnedBytes: maxPinnedBytes)
        }
    }

    /// The asset as its row says; a row that is damaged is taken out, and the asset fetched anew.
    private func intactRow(of id: AssetID) async throws(CacheError) -> StoredAsset? {
        try await intact(id) { () async throws(CacheError) in try await catalog.asset(id) }
    }

    private func intact(
        _ id: AssetID, _ row: () async throws(CacheError) -> StoredAsset?
    ) async throws(CacheError) -> StoredAsset? {
        do throws(CacheError) {
            return try await row()
        } catch  where error.cause is DamagedRow {
            _ = try await discardIfDamaged(id)
            return nil
        }
    }
}
