package import CacheCore
import Logging
import Synchronization

/// Loading of assets, with correction of rows that do not match their file.
extension Store {
    /// Returns an asset ready for use: its row, limited to the bytes that its file contains. Nil if the asset is
    /// unknown.
    ///
    /// Corrects the catalog if the file is missing or shorter than the row claims. A damaged row is deleted, and the
    /// asset counts as unknown. The file of an asset whose master key is missing has a ``SparseFile/lock``. Throws `overloaded` if the process has no free file descriptor.
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
            logger.warning("an asset file is missing", metadata: ["file": "\(name)"])
            try await catalog.emptyRow(of: name, ifGone: layout.path(of: name), disk)
            return LoadedAsset(record: stored.record, extents: ByteRangeSet(), file: nil)
        }
        if let last = stored.extents.runs.last, last.upperBound > size {
            logger.warning("an asset file is shorter than its extents", metadata: ["file": "\(name)"])
            try await catalog.cutRow(of: name, toEndOf: layout.path(of: name), disk)
            // The row was corrected; read it again.
            return try await load(id)
        }
        // Everybody who can change the disk could also raise `checked_run`: encrypted files are verified in each run.
        let run = lastRun(of: name, checkedRun: file.isEncrypted ? 0 : stored.checkedRun)
        return LoadedAsset(
            record: stored.record, extents: readable(stored.extents, of: file), file: file,
            isSuspect: run < (file.isEncrypted ? catalog.run : catalog.suspectRun), isUnverified: run < catalog.run)
    }

    /// Whether the bytes of a loaded asset can be used if they are to be stored encrypted or not: they are stored so, or
    /// wait for their conversion, and their key is there or can come back.
    package func isUsable(_ asset: LoadedAsset, encrypted: Bool) -> Bool {
        guard let file = asset.file else { return true }
        guard file.isEncrypted == encrypted || masterKeys.onChange == .convert,
            file.cipher?.sealedKey?.isErased != true
        else { return false }
        return file.lock == nil || masterKeys.onMissingKey == .refuse
    }

    /// Removes the bytes of a closed asset from its row, and its file. Returns the disk usage of the file before.
    package func discardBytes(of asset: LoadedAsset) async throws(CacheError) -> Int64 {
        guard let name = asset.file?.name else { return 0 }
        try await catalog.emptyRow(of: asset.record.id)
        return try await onDiskQueue { () throws(CacheError) in try self.unlinkMeasured(name) }
    }

    /// The extents that can be decrypted. A range without a nonce is damage of the catalog.
    private func readable(_ extents: ByteRangeSet, of file: SparseFile) -> ByteRangeSet {
        guard let cipher = file.cipher else { return extents }
        var (extents, lost) = (extents, extents)
        for run in cipher.runs(in: extents.runs) { lost.remove(run.range) }
        guard !lost.isEmpty else { return extents }
        logger.error(
            "encrypted bytes have lost their nonces and are fetched again",
            metadata: ["path": "\(file.path ?? "")", "bytes": "\(lost.byteCount)"])
        for run in lost.runs { extents.remove(run) }
        return extents
    }

    /// Deletes an asset's row if its checksum does not match; returns whether it did.
    package func discardIfDamaged(_ id: AssetID) async throws(CacheError) -> Bool {
        let isDamaged = try await catalog.discardDamagedRow(of: id)
        if isDamaged { damagedRows.add(1, ordering: .relaxed) }
        if isDamaged { logger.error("an asset row was damaged and has been deleted", metadata: ["asset": "\(id)"]) }
        return isDamaged
    }

    /// The last run of the service that created the file or verified all its bytes.
    private func lastRun(of name: FileName, checkedRun: Int64) -> Int64 {
        max(name.serial >> Self.serialBits, checkedRun)
    }

    /// Applies an administrator's changes, as `Catalog.updateAsset`. Deletes a damaged row and returns nil, as for an
    /// unknown asset.
    package func updateAsset(
        _ id: AssetID, _ patch: AssetPatch, maxPinnedBytes: Int64? = nil
    ) async throws(CacheError) -> StoredAsset? {
        try await intact(id) { () async throws(CacheError) in
            try await catalog.updateAsset(id, patch, maxPinnedBytes: maxPinnedBytes)
        }
    }

    /// Reads an asset's row. Deletes a damaged row and returns nil; the asset is then fetched again.
    private func intactRow(of id: AssetID) async throws(CacheError) -> StoredAsset? {
        try await intact(id) { () async throws(CacheError) in try await catalog.asset(id) }
    }

    /// Runs `row`; on a `DamagedRow` deletes the row and returns nil.
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
