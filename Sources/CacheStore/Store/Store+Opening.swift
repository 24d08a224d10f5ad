import CacheCore
import Logging

/// Report on a catalog that was quarantined, or found empty, and replaced by a new one.
package struct CatalogReset: Hashable, Sendable {
    /// Path of the quarantined catalog, or of the catalog itself if it was empty.
    package var path: String
    /// Description of the damage.
    package var reason: String
}

/// Steps of `Store.open`.
extension Store {
    /// Opens the catalog. Quarantines a damaged one, if `mayLose`, and creates a new one.
    ///
    /// Also reports a catalog that was empty beside files of assets. Then no file is quarantined.
    static func openCatalog(
        _ layout: StoreLayout, _ secrets: SecretBox, _ reserve: EmergencyReserve, _ disk: any Disk, isNew: Bool,
        mayLose: Bool, now: Timestamp, _ logger: Logger
    ) throws(CacheError) -> (Catalog, CatalogReset?) {
        do throws(CacheError) {
            var known: Int64?
            let catalog = try openWithRoom(layout, secrets, reserve, disk, mayLose: mayLose, logger) {
                known = try lastRun(in: layout, disk)
                return known ?? 0
            }
            guard !isNew, known ?? 0 > 0 else { return (catalog, nil) }
            let loss = CatalogReset(path: layout.catalog, reason: "It was empty beside files of assets.")
            logger.critical(
                "the catalog was empty: the store starts empty; jobs, origins and the policy set through the API are lost",
                metadata: ["catalog": "\(loss.path)"])
            return (catalog, loss)
        } catch {
            guard mayLose, let damage = error.cause as? DamagedCatalog else { throw error }
            let path = "\(layout.catalog).damaged-\(now.milliseconds)"
            for suffix in ["", "-wal", "-shm"] where try disk.status(of: layout.catalog + suffix) != nil {
                try disk.rename(layout.catalog + suffix, to: path + suffix)
            }
            try disk.syncDirectory(layout.directory)
            logger.critical(
                "the catalog was damaged and is quarantined: the store starts empty; jobs, origins and the policy set through the API are lost",
                metadata: ["catalog": "\(path)", "reason": "\(damage)"])
            let catalog = try openWithRoom(layout, secrets, reserve, disk, mayLose: mayLose, logger) {
                try lastRun(in: layout, disk)
            }
            return (catalog, CatalogReset(path: path, reason: damage.description))
        }
    }

    /// Opens the catalog even on a full disk, in up to three attempts:
    ///
    /// 1. as it is;
    /// 2. after releasing the emergency reserve;
    /// 3. after deleting files of assets, if `mayLose`. A row with a missing file counts as a row without bytes.
    private static func openWithRoom(
        _ layout: StoreLayout, _ secrets: SecretBox, _ reserve: EmergencyReserve, _ disk: any Disk, mayLose: Bool,
        _ logger: Logger, earlierRun: () throws -> Int64
    ) throws(CacheError) -> Catalog {
        let release = { () throws(CacheError) in _ = try reserve.release() }
        let giveUp = { () throws(CacheError) in if mayLose { try giveUpFiles(layout, disk, logger) } }
        for makeRoom in [release, giveUp] {
            do throws(CacheError) {
                // If the free space is unknown, the opening is attempted.
                let hasRoom = (try? disk.freeBytes(at: layout.directory)).map { $0 >= leastRoom } ?? true
                if hasRoom { return try Catalog(path: layout.catalog, secrets: secrets, earlierRun: earlierRun) }
            } catch {
                guard error.code == .storageFull else { throw error }
            }
            try makeRoom()
        }
        return try Catalog(path: layout.catalog, secrets: secrets, earlierRun: earlierRun)
    }

    /// Minimum free space, in bytes, for the index of the write-ahead log: SQLite recovers it without checking for
    /// space (`SharedIndex`).
    private static let leastRoom: Int64 = 256 << 10

    /// Deletes files of assets until the disk has space for a start and for the emergency reserve. Prefers the smallest
    /// file that is large enough on its own; otherwise deletes the largest files first.
    private static func giveUpFiles(_ layout: StoreLayout, _ disk: any Disk, _ logger: Logger) throws(CacheError) {
        var files: [(path: String, bytes: Int64)] = []
        for shard in StoreLayout.shards {
            for entry in try disk.list(layout.shard(shard)) where FileName(entry) != nil {
                let path = layout.shard(shard) + "/" + entry
                guard let status = try disk.status(of: path), status.isRegular else { continue }
                files.append((path, status.diskBytes))
            }
        }
        files.sort { $0.bytes > $1.bytes }
        let needed = 3 * Int64(EmergencyReserve.size)
        var (count, freed): (Int, Int64) = (0, 0)
        for file in files.last(where: { $0.bytes >= needed }).map({ [$0] }) ?? files where freed < needed {
            try disk.unlink(file.path)
            (count, freed) = (count + 1, freed + file.bytes)
        }
        logger.critical(
            "the disk was full, so the catalog could not be opened: files of assets were deleted",
            metadata: ["files": "\(count)", "bytes": "\(freed)"])
    }

    /// Corrects timestamps in the future, which exist if the wall clock was set back. On a full disk the emergency
    /// reserve is released first. A failure is logged, and the store opens anyway.
    static func clampFutureTimestamps(
        of catalog: Catalog, at now: Timestamp, _ reserve: EmergencyReserve, _ logger: Logger
    ) {
        do throws(CacheError) {
            let isSetBack: Bool
            do throws(CacheError) {
                isSetBack = try catalog.clampFutureTimestamps(at: now)
            } catch  where error.code == .storageFull {
                _ = try reserve.release()
                isSetBack = try catalog.clampFutureTimestamps(at: now)
            }
            guard isSetBack else { return }
            logger.warning("the clock was set back since the last use of the store: future timestamps were replaced")
        } catch {
            logger.error("the catalog cannot be checked for future timestamps", metadata: ["error": "\(error)"])
        }
    }

    /// Creates missing shard directories. Anything else with a shard's name is quarantined.
    static func createShards(
        _ layout: StoreLayout, _ disk: any Disk, now: Timestamp, _ logger: Logger
    ) throws(CacheError) {
        let isNew = try disk.createDirectory(layout.assets)
        let directories = isNew ? [] : try disk.directories(in: layout.assets, named: Set(StoreLayout.shards))
        let missing = StoreLayout.shards.filter { !directories.contains($0) }
        guard !missing.isEmpty else { return }
        let present = isNew ? [] : Set(try disk.list(layout.assets))
        for shard in missing {
            let path = layout.shard(shard)
            if present.contains(shard) {
                let aside = "\(path).aside-\(now.milliseconds)"
                try disk.rename(path, to: aside)
                logger.error("a file in place of a shard directory was quarantined", metadata: ["path": "\(aside)"])
            }
            _ = try disk.createDirectory(path)
        }
        try disk.syncDirectory(layout.assets)
    }

    /// Returns the number of the last run that left files behind, 0 if there are none. A new catalog must not assign
    /// the serials of those files again; the files themselves are orphans.
    private static func lastRun(in layout: StoreLayout, _ disk: any Disk) throws(CacheError) -> Int64 {
        var last: Int64 = 0
        for shard in StoreLayout.shards {
            for entry in try disk.list(layout.shard(shard)) {
                if let name = FileName(entry) { last = max(last, name.serial >> serialBits) }
            }
        }
        return last
    }

    /// Creates the store's directory; returns whether it did. Throws `conflict` if the directory exists and contains
    /// foreign files but no file of a store.
    static func takeDirectory(_ layout: StoreLayout, _ disk: any Disk) throws(CacheError) -> Bool {
        if try disk.createDirectory(layout.directory) { return true }
        try checkOwnership(layout, disk)
        return false
    }

    /// Throws `conflict` if the directory contains foreign files but no file of a store.
    static func checkOwnership(_ layout: StoreLayout, _ disk: any Disk) throws(CacheError) {
        let names = try disk.list(layout.directory)
        // Hidden files and `lost+found` do not count as foreign.
        let strangers = names.filter { !$0.hasPrefix(".") && $0 != "lost+found" }.sorted()
        // After a power loss during the creation of a store, any one of these files can be the only one. A draft of the
        // secret key alone is accepted too. It does not identify a store, because the name is not specific to Larder.
        let store = [layout.lock, layout.assets, layout.secretKey, layout.catalog]
        let isDraft = strangers.map { "\(layout.directory)/\($0)" } == [layout.secretKeyDraft]
        if !strangers.isEmpty, !isDraft, !names.contains(where: { store.contains("\(layout.directory)/\($0)") }) {
            throw CacheError(
                .conflict,
                "The data directory \(layout.directory) is not a store of Larder: it contains \(strangers[0]) and no file of"
                    + " a store. Choose an empty directory, or one that does not exist yet.")
        }
    }

    /// Tests the file system's support for sparse files and hole punching, and logs missing support.
    static func holes(
        in layout: StoreLayout, _ disk: any Disk, _ reserve: EmergencyReserve, _ logger: Logger
    ) throws(CacheError) -> HoleSupport {
        let holes: HoleSupport
        do throws(CacheError) {
            holes = try disk.holes(in: layout.directory)
        } catch  where error.code == .storageFull {
            return HoleSupport(areSparse: true, canBePunched: true)  // unknown; the next start tests again
        }
        if !holes.canBePunched {
            logger.warning(
                "the file system cannot punch holes: eviction deletes whole files",
                metadata: ["directory": "\(layout.directory)"])
        }
        if !holes.areSparse {
            logger.warning(
                "the file system has no sparse files: an asset occupies disk space up to its last cached byte",
                metadata: ["directory": "\(layout.directory)"])
        }
        return holes
    }
}
