package import CacheCore
import Logging

/// Result of a reconciliation.
package struct Reconciliation: Hashable, Sendable {
    /// Files without a row, left by a process that ended before its commit.
    var removedFiles = 0
    /// Rows with a missing file.
    package var emptiedRows = 0
    /// Rows that claimed bytes beyond the end of their file.
    package var cutRows = 0
    /// Files with blocks that no row claims: punches that were pending when the service ended.
    var trimmedFiles = 0
    /// Disk usage of the files of earlier runs, in bytes. The engine accounts for the files that this run writes.
    package var usedDiskBytes: Int64 = 0
}

/// Reconciliation of files and catalog after a start.
extension Store {
    /// Makes files and catalog consistent, and measures the disk usage. Runs once after each start, while the store is
    /// in use. Throws `cancelled` if the task is cancelled.
    ///
    /// Only files of earlier runs are removed: a file of this run can still wait for its commit.
    package func reconcile() async throws(CacheError) -> Reconciliation {
        var result = Reconciliation()
        for (number, shard) in StoreLayout.shards.enumerated() {
            if Task.isCancelled { throw CacheError(.cancelled, "The store's reconciliation was cancelled.") }
            let claims = try await catalog.claims(inShard: number)
            let found = try await unlessUnreadable(shard) { () async throws(CacheError) in
                try await self.onDiskQueue { () throws(CacheError) in try self.compare(shard, claims) }
            }
            guard let (shardResult, doubtful, fat) = found else { continue }
            result.removedFiles += shardResult.removedFiles
            result.usedDiskBytes += shardResult.usedDiskBytes
            // The listing is outdated by now: each correction checks its file again inside a transaction.
            for name in doubtful {
                try await repair(name, &result)
            }
            for name in fat {
                let freed = try await unlessUnreadable("\(name)") { () async throws(CacheError) in
                    try await self.trim(name)
                }
                guard let freed, freed > 0 else { continue }
                result.trimmedFiles += 1
                result.usedDiskBytes -= freed
            }
        }
        logger.info(
            "store reconciled",
            metadata: [
                "removedFiles": "\(result.removedFiles)", "emptiedRows": "\(result.emptiedRows)",
                "cutRows": "\(result.cutRows)", "trimmedFiles": "\(result.trimmedFiles)",
                "usedDiskBytes": "\(result.usedDiskBytes)",
            ])
        return result
    }

    /// Returns the disk usage of all files in the shard directories, in bytes. Lists every directory.
    package func usedDiskBytes() async throws(CacheError) -> Int64 {
        try await onDiskQueue { () throws(CacheError) -> Int64 in
            var bytes: Int64 = 0
            for shard in StoreLayout.shards {
                for name in try self.disk.list(self.layout.shard(shard)) {
                    bytes += try self.disk.status(of: self.layout.shard(shard) + "/" + name)?.diskBytes ?? 0
                }
            }
            return bytes
        }
    }

    /// Runs `look`; logs a failure and returns nil, so that one unreadable file or directory does not stop the
    /// reconciliation. Throws `overloaded` and `cancelled`.
    private func unlessUnreadable<Value>(
        _ place: String, _ look: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value? {
        do throws(CacheError) {
            return try await look()
        } catch {
            guard error.code != .overloaded, error.code != .cancelled else { throw error }
            logger.error(
                "a part of the store cannot be read", metadata: ["place": "\(place)", "error": "\(error)"])
            return nil
        }
    }

    /// Compares a shard's files with its claims. Removes orphaned files of earlier runs. `doubtful`: rows that do not
    /// match their file. `fat`: files with more blocks than their row explains.
    private func compare(
        _ shard: String, _ claims: [FileName: Catalog.Claim]
    ) throws(CacheError) -> (Reconciliation, doubtful: [FileName], fat: [FileName]) {
        var result = Reconciliation()
        var missing = claims
        var (doubtful, fat): ([FileName], [FileName]) = ([], [])
        for entry in try disk.list(layout.shard(shard)) {
            let path = layout.shard(shard) + "/" + entry
            guard let status = try disk.status(of: path) else { continue }
            guard let name = FileName(entry) else {
                result.usedDiskBytes += status.diskBytes
                continue
            }
            // A row never returns to an old file. Therefore a file without a claim, read before the listing,
            // has none now.
            if let claim = missing.removeValue(forKey: name) {
                if claim.end > status.size || !status.isRegular { doubtful.append(name) }
                if isOfEarlierRun(name), status.isRegular, status.diskBytes > claim.mostDiskBytes { fat.append(name) }
            } else if isOfEarlierRun(name), removed(name) {
                result.removedFiles += 1
                continue
            }
            if isOfEarlierRun(name) { result.usedDiskBytes += status.diskBytes }
        }
        return (result, doubtful + missing.keys, fat)
    }

    /// Removes an orphaned file; returns whether it did. A failure only costs disk space and is logged.
    private func removed(_ name: FileName) -> Bool {
        do throws(CacheError) {
            try unlink(name)
            return true
        } catch {
            logger.error(
                "an orphaned file cannot be removed", metadata: ["file": "\(name)", "error": "\(error)"])
            return false
        }
    }

    /// Punches the holes that an earlier run left pending, unless this run writes to the file, or a former process still
    /// reads; returns the number of freed bytes.
    ///
    /// 1. The file is opened first. Later openings return the same object, so that it sees their writes.
    /// 2. Then the catalog is read. Bytes that this run wrote before step 1 and committed are in its answer. Bytes
    ///    written after step 1 are excluded, or the whole file is skipped.
    private func trim(_ name: FileName) async throws(CacheError) -> Int64 {
        guard holes.canBePunched, !isReadByFormerProcess else { return 0 }
        let file = try await onDiskQueue { () throws(CacheError) in try self.openFile(name) }
        guard let file, let extents = try await catalog.extents(of: name.serial) else { return 0 }
        return try await onDiskQueue { () throws(CacheError) -> Int64 in
            let before = try file.status()
            let gaps = extents.gaps(in: 0..<before.size)
            guard file.holdIfUnwritten(gaps) else { return 0 }
            _ = try file.punchHeld(in: ByteRangeSet(gaps))
            return before.diskBytes - (try file.diskBytes())
        }
    }

    /// Whether an earlier run of the service created the file.
    private func isOfEarlierRun(_ name: FileName) -> Bool { name.serial >> Self.serialBits < catalog.run }

    /// Corrects a row if its file is missing or too short.
    private func repair(_ name: FileName, _ result: inout Reconciliation) async throws(CacheError) {
        let path = layout.path(of: name)
        let isGone = try await catalog.emptyRow(of: name, ifGone: path, disk)
        let isCut = try await catalog.cutRow(of: name, toEndOf: path, disk)
        result.emptiedRows += isGone ? 1 : 0
        result.cutRows += isCut ? 1 : 0
    }
}
