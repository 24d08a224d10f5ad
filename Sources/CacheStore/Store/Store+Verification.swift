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
        var page = try await catalog.examinedRows(after: nil, repairing: repairing)
        while let last = page.last {
            // The rows of the next page are read while the files of this one are verified.
            async let next = rows(after: last.id, repairing)
            try await look(at: page, repairing, commits, &audit) { onProgress?($0, whole) }
            page = try await next.get()
        }
        try await commits.flush()
        let groups = try await catalog.usageFaults(repairing: repairing)
        if groups > 0 {
            audit.findings.append(VerificationReport.Finding(kind: .wrongUsage, file: "\(groups) rows of the usage"))
        }
        let areGone = try await lookForOrphans(repairing, &audit)
        audit.isRepaired = repairing && areGone && !audit.findings.contains { $0.kind == .damagedCatalog }
        return audit
    }

    /// The rows of the next page, for a concurrent call.
    private func rows(after id: AssetID, _ repairing: Bool) async -> Result<[ExaminedRows], CacheError> {
        do throws(CacheError) {
            return .success(try await catalog.examinedRows(after: id, repairing: repairing))
        } catch {
            return .failure(error)
        }
    }

    /// The comparison of a file with the extents of its row.
    private enum ExaminedFile: Sendable {
        case missing
        /// The master key of the file is missing.
        case locked(bytes: Int64)
        /// `bad`: the ranges that do not match their checksums.
        case present(size: Int64, bytes: Int64, bad: ByteRangeSet)
    }

    /// Verifies the assets of a page and adds the findings. All files of a page are read by one call on the disk queue,
    /// because the switch between threads takes longer than the verification of a small asset.
    ///
    /// An unreadable file is a finding and does not stop the others. Throws `overloaded` if the process has no free file
    /// descriptor.
    private func look(
        at page: [ExaminedRows], _ repairing: Bool, _ commits: CommitQueue, _ audit: inout VerificationReport,
        onBlock: @escaping @Sendable (_ bytes: Int64) -> Void
    ) async throws(CacheError) {
        let verified = audit.bytes
        let files = try await onDiskQueue { () throws(CacheError) -> [Result<ExaminedFile, CacheError>?] in
            var bytes = verified
            return page.map { rows in
                guard let name = rows.stored?.file else { return nil }
                do throws(CacheError) {
                    return .success(try self.examine(name, rows, &bytes, onBlock: onBlock))
                } catch {
                    return .failure(error)
                }
            }
        }
        var intact: [FileName] = []
        for (rows, file) in zip(page, files) {
            audit.assets += 1
            do throws(CacheError) {
                guard try await lookAtRow(rows, repairing, &audit), let name = rows.stored?.file, let file
                else { continue }
                if try await look(at: file.get(), name, rows, repairing, commits, &audit) { intact.append(name) }
            } catch {
                guard let failure = error.cause as? SystemCallError, error.code != .overloaded else { throw error }
                audit.findings.append(VerificationReport.Finding(kind: .unreadable, asset: rows.id, file: failure.path))
                if repairing { try await catalog.emptyRow(of: rows.id) }
            }
        }
        if repairing { try await catalog.checked(intact) }
    }

    /// Compares a file with its extents, block by block. Blocks.
    private func examine(
        _ name: FileName, _ rows: ExaminedRows, _ verified: inout Int64, onBlock: (_ bytes: Int64) -> Void
    ) throws(CacheError) -> ExaminedFile {
        guard let file = try openFile(name) else { return .missing }
        guard file.lock == nil else { return .locked(bytes: rows.stored?.cachedBytes ?? 0) }
        let (size, before) = (try file.size(), verified)
        var (present, bad) = (rows.stored?.extents ?? ByteRangeSet(), ByteRangeSet())
        present.remove(size..<Int64.max)
        for part in present.runs.flatMap(BlockChecksums.cut) {
            onBlock(verified)
            verified += part.length
            if try !fits(part, of: file, rows) { bad.insert(part) }
        }
        return .present(size: size, bytes: verified - before, bad: bad)
    }

    /// Whether the bytes of a part of a block match their checksums. Bytes without one are right only in a file that was
    /// written before checksums existed.
    private func fits(_ part: ByteRange, of file: SparseFile, _ rows: ExaminedRows) throws(CacheError) -> Bool {
        for piece in rows.sums.pieces(touching: part) where try file.sum(of: piece.range) != piece.sum { return false }
        for gap in rows.sums.gaps(in: part) {
            guard rows.isUnsummed, try file.wholeBytes(gap) != nil else { return false }
        }
        return true
    }

    /// Adds the finding of a damaged row. Returns whether the row is intact.
    private func lookAtRow(
        _ rows: ExaminedRows, _ repairing: Bool, _ audit: inout VerificationReport
    ) async throws(CacheError) -> Bool {
        guard rows.isDamaged else { return true }
        audit.findings.append(VerificationReport.Finding(kind: .damagedRow, asset: rows.id))
        if repairing { try await catalog.discardDamagedRow(of: rows.id) }
        return false
    }

    /// Adds the findings of a file and of the rows that belong to it; `repairing`: removes what is bad. Returns whether
    /// all its bytes match.
    private func look(
        at file: ExaminedFile, _ name: FileName, _ rows: ExaminedRows, _ repairing: Bool, _ commits: CommitQueue,
        _ audit: inout VerificationReport
    ) async throws(CacheError) -> Bool {
        if case .locked(let bytes) = file {
            audit.lockedBytes += bytes
            return false
        }
        guard case .present(let size, let bytes, var bad) = file else {
            audit.findings.append(VerificationReport.Finding(kind: .missingFile, asset: rows.id, file: "\(name)"))
            if repairing { try await catalog.emptyRow(of: name, ifGone: layout.path(of: name), disk) }
            return false
        }
        try await lookAtSums(of: name, rows, repairing, &audit)
        audit.bytes += bytes
        if let last = rows.stored?.extents.runs.last, last.upperBound > size {
            audit.findings.append(
                VerificationReport.Finding(
                    kind: .shortFile, asset: rows.id, file: "\(name)", range: size..<last.upperBound))
            if repairing {
                try await catalog.cutRow(of: name, toEndOf: layout.path(of: name), disk)
                // The rest of a truncated piece has left the row with the missing bytes.
                let left = try await catalog.extents(of: name.serial) ?? ByteRangeSet()
                bad = ByteRangeSet(bad.runs.flatMap { left.runs(in: $0) })
            }
        }
        for run in bad.runs {
            audit.findings.append(
                VerificationReport.Finding(kind: .badBytes, asset: rows.id, file: "\(name)", range: run))
        }
        if repairing, !bad.isEmpty {
            let runs = bad.runs
            let damaged = try await onDiskQueue { () throws(CacheError) in try self.openFile(name) }
            if let damaged { commits.cut(damaged, runs) }
        }
        return bad.isEmpty
    }

    /// Adds the findings of the checksum rows and of the byte count of one file.
    private func lookAtSums(
        of name: FileName, _ rows: ExaminedRows, _ repairing: Bool, _ audit: inout VerificationReport
    ) async throws(CacheError) {
        for _ in 0..<rows.straySums {
            audit.findings.append(
                VerificationReport.Finding(kind: .damagedRow, asset: rows.id, file: "\(name)"))
        }
        if rows.straySums > 0, repairing { _ = try await catalog.dropStraySums(of: name.serial) }
        if rows.isCountWrong {
            audit.findings.append(VerificationReport.Finding(kind: .wrongCount, asset: rows.id, file: "\(name)"))
            if repairing { try await catalog.correctCount(of: name.serial) }
        }
        if rows.isUnsummed { audit.uncheckableBytes += rows.stored?.cachedBytes ?? 0 }
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
