package import CacheCore
import Logging

/// What a look at the whole store found.
package struct Reconciliation: Hashable, Sendable {
    /// Files without rows, left by a process that ended before its commit.
    package var removedFiles = 0
    /// Rows whose file was gone.
    package var emptiedRows = 0
    /// Rows that claimed bytes beyond their file's end.
    package var cutRows = 0
    /// Files that kept blocks which no row claims: holes that were to be made when the service ended.
    package var trimmedFiles = 0
    /// What files of earlier runs take on the device; whoever writes the others knows what they take.
    package var usedDiskBytes: Int64 = 0
}

extension Store {
    /// Makes files and catalog agree, and measures the space in use. Once after each start, while the store is in use.
    ///
    /// Only files of earlier runs are removed: those of this run may wait for their commit.
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

    /// What all files of assets take on the device; walks every directory.
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

    /// What cannot be looked at, for another reason than want of descriptors, does not stop the others; nil is the answer then.
    private func unlessUnreadable<Value>(
        _ place: String, _ look: () async throws(CacheError) -> Value
    ) async throws(CacheError) -> Value? {
        do throws(CacheError) {
            return try await look()
        } catch {
            guard error.code != .overloaded, error.code != .cancelled else { throw error }
            logger.error(
                "a part of the store cannot be looked at", metadata: ["place": "\(place)", "error": "\(error)"])
            return nil
        }
    }

    /// Removes a shard's files without rows; answers which rows do not fit their files.
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
            // A row never comes back to an old file, so what had no row before the listing has none now.
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

    /// What cannot be removed is in nobody's way but that of the disk's space.
    private func removed(_ name: FileName) -> Bool {
        do throws(CacheError) {
            try unlink(name)
            return true
        } catch {
            logger.error(
                "a file that no asset has cannot be removed", metadata: ["file": "\(name)", "error": "\(error)"])
            return false
        }
    }

    /// Makes the holes that an earlier run was to make and did not, before anybody writes to the file; answers how many bytes
    /// that has freed.
    ///
    /// 1. The file is opened first: who opens it later gets the same object, and a write to it shows.
    /// 2. Then the catalog is asked. What was written in this run before 1, and committed, is in its answer; what is written
    ///    after 1 is spared, or all of the file is left alone.
    private func trim(_ name: FileName) async throws(CacheError) -> Int64 {
        guard holes.canBePunched else { return 0 }
        let file = try await onDiskQueue { () throws(CacheError) in try self.openFile(name) }
        guard let file, let extents = try await catalog.extents(of: name.serial) else { return 0 }
        return try await onDiskQueue { () throws(CacheError) -> Int64 in
            let before = try file.status()
            let gaps = extents.gaps(in: 0..<before.size)
            guard file.doomIfUnwritten(gaps) else { return 0 }
            _ = try file.punchDoomed(in: ByteRangeSet(gaps))
            return before.diskBytes - (try file.diskBytes())
        }
    }

    private func isOfEarlierRun(_ name: FileName) -> Bool { name.serial >> Self.serialBits < catalog.run }

    private func repair(_ name: FileName, _ result: inout Reconciliation) async throws(CacheError) {
        let path = layout.path(of: name)
        let isGone = try await catalog.emptyRow(of: name, ifGone: path, disk)
        let isCut = try await catalog.cutRow(of: name, toEndOf: path, disk)
        result.emptiedRows += isGone ? 1 : 0
        result.cutRows += isCut ? 1 : 0
    }
}
