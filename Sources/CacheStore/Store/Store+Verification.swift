package import CacheCore

/// Offline verification and repair (`larder verify`).
extension Store {
    /// Receives the verified bytes, and the bytes of all assets; nil if the catalog cannot tell them.
    package typealias VerificationObserver = @Sendable (_ bytes: Int64, _ whole: Int64?) -> Void

    /// Verifies catalog, files and checksums completely, for a store that no service uses. `repairing`: deletes
    /// everything that is wrong, so that the rest is consistent. `onProgress` is called after each block.
    package func audit(
        repairing: Bool, onProgress: VerificationObserver? = nil
    ) async throws(CacheError) -> VerificationReport {
        var audit = VerificationReport()
        // A damaged catalog is a finding below; only the progress lacks its whole then.
        let whole = onProgress == nil ? nil : try? await catalog.totals().cachedBytes
        let commits = CommitQueue(store: self, uptime: { .zero })  // nothing reads its commit lag
        onProgress?(0, whole)
        for sentence in try await catalog.faults() {
            audit.findings.append(VerificationReport.Finding(kind: .damagedCatalog, file: sentence))
        }
        var last: AssetID?
        while true {
            let page = try await catalog.assetIDs(after: last, limit: 256)
            guard let end = page.last else { break }
            for id in page {
                try await lookIfReadable(at: id, repairing, commits, &audit) { onProgress?($0, whole) }
            }
            last = end
        }
        try await commits.flush()
        let areGone = try await lookForOrphans(repairing, &audit)
        audit.isRepaired = repairing && areGone && !audit.findings.contains { $0.kind == .damagedCatalog }
        return audit
    }

    /// Verifies one asset. An unreadable file is a finding and does not stop the others; `repairing` removes its bytes
    /// from the row. Throws `overloaded` if the process has no free file descriptor.
    private func lookIfReadable(
        at id: AssetID, _ repairing: Bool, _ commits: CommitQueue, _ audit: inout VerificationReport,
        onBlock: (_ bytes: Int64) -> Void
    ) async throws(CacheError) {
        audit.assets += 1
        do throws(CacheError) {
            try await look(at: id, repairing, commits, &audit, onBlock: onBlock)
        } catch {
            guard let failure = error.cause as? SystemCallError, error.code != .overloaded else { throw error }
            audit.findings.append(VerificationReport.Finding(kind: .unreadable, asset: id, file: failure.path))
            if repairing { try await catalog.emptyRow(of: id) }
        }
    }

    /// Verifies the row, the checksum rows and the bytes of one asset, and adds the findings.
    private func look(
        at id: AssetID, _ repairing: Bool, _ commits: CommitQueue, _ audit: inout VerificationReport,
        onBlock: (_ bytes: Int64) -> Void
    ) async throws(CacheError) {
        let stored: StoredAsset?
        do throws(CacheError) {
            stored = try await catalog.asset(id)
        } catch  where error.cause is DamagedRow {
            audit.findings.append(VerificationReport.Finding(kind: .damagedRow, asset: id))
            if repairing { try await catalog.discardDamagedRow(of: id) }
            return
        }
        guard let stored, let name = stored.file else { return }
        let file = try await onDiskQueue { () throws(CacheError) in try self.openFile(name) }
        guard let file else {
            audit.findings.append(VerificationReport.Finding(kind: .missingFile, asset: id, file: "\(name)"))
            if repairing { try await catalog.emptyRow(of: name, ifGone: layout.path(of: name), disk) }
            return
        }
        try await lookAtRows(of: name, stored, repairing, &audit)
        try await look(at: file, stored, repairing, commits, &audit, onBlock: onBlock)
    }

    /// Verifies the checksum rows and the byte count of one file.
    private func lookAtRows(
        of name: FileName, _ stored: StoredAsset, _ repairing: Bool, _ audit: inout VerificationReport
    ) async throws(CacheError) {
        let wrongRows = try await catalog.straySums(of: name.serial, dropping: repairing)
        for _ in 0..<wrongRows {
            audit.findings.append(
                VerificationReport.Finding(kind: .damagedRow, asset: stored.record.id, file: "\(name)"))
        }
        if try await catalog.countIsWrong(of: name.serial, correcting: repairing) {
            audit.findings.append(
                VerificationReport.Finding(kind: .wrongCount, asset: stored.record.id, file: "\(name)"))
        }
        if try await catalog.isUnsummedLater(name.serial) { audit.uncheckableBytes += stored.cachedBytes }
    }

    /// Verifies the length and the bytes of one file, block by block. `repairing`: removes bad ranges; a file without any
    /// is recorded as verified by this run.
    private func look(
        at file: SparseFile, _ stored: StoredAsset, _ repairing: Bool, _ commits: CommitQueue,
        _ audit: inout VerificationReport, onBlock: (_ bytes: Int64) -> Void
    ) async throws(CacheError) {
        guard let name = file.name else { return }
        let size = try await onDiskQueue { () throws(CacheError) in try file.size() }
        var extents = stored.extents
        if let last = extents.runs.last, last.upperBound > size {
            audit.findings.append(
                VerificationReport.Finding(
                    kind: .shortFile, asset: stored.record.id, file: "\(name)", range: size..<last.upperBound))
            if repairing { try await catalog.cutRow(of: name, toEndOf: layout.path(of: name), disk) }
            extents = try await catalog.extents(of: name.serial) ?? ByteRangeSet()
            extents.remove(size..<Int64.max)
        }
        var bad = ByteRangeSet()
        for part in extents.runs.flatMap(BlockChecksums.cut) {
            onBlock(audit.bytes)
            audit.bytes += part.length
            guard case .bad = try await onDiskQueue({ () throws(CacheError) in try commits.check(part, of: file) })
            else { continue }
            bad.insert(part)
        }
        for run in bad.runs {
            audit.findings.append(
                VerificationReport.Finding(kind: .badBytes, asset: stored.record.id, file: "\(name)", range: run))
        }
        guard repairing else { return }
        if bad.isEmpty { try await catalog.checked(name) } else { commits.cut(file, bad.runs) }
    }

    /// Reports files without a row, and removes them if `repairing`. Returns whether every directory could be listed
    /// and every removal succeeded.
    private func lookForOrphans(_ repairing: Bool, _ audit: inout VerificationReport) async throws(CacheError) -> Bool {
        var isWell = true
        for (number, shard) in StoreLayout.shards.enumerated() {
            let claims = try await catalog.claims(inShard: number)
            guard let entries = try? disk.list(layout.shard(shard)) else {
                audit.findings.append(VerificationReport.Finding(kind: .unreadable, file: shard))
                isWell = false
                continue
            }
            for entry in entries {
                audit.files += 1
                if let name = FileName(entry), claims[name] != nil { continue }
                audit.findings.append(VerificationReport.Finding(kind: .orphanFile, file: "\(shard)/\(entry)"))
                guard repairing else { continue }
                // A failed removal makes the report unrepaired.
                if (try? disk.unlink(layout.shard(shard) + "/" + entry)) == nil { isWell = false }
            }
        }
        return isWell
    }
}
