import CacheCore
import Logging

/// A catalog that was damaged, and put aside.
package struct CatalogLoss: Hashable, Sendable {
    /// Where it lies now.
    package var path: String
    /// What was wrong with it.
    package var reason: String
}

extension Store {
    /// Opens the catalog; puts a damaged one aside and begins a new one.
    static func openCatalog(
        _ layout: StoreLayout, _ secrets: SecretBox, _ reserve: Reserve, _ disk: any Disk, isNew: Bool, mayLose: Bool,
        now: Timestamp, _ logger: Logger
    ) throws(CacheError) -> (Catalog, CatalogLoss?) {
        do throws(CacheError) {
            var known: Int64?
            let catalog = try openWithRoom(layout, secrets, reserve, disk, mayLose: mayLose, logger) {
                known = try lastRun(in: layout, disk)
                return known ?? 0
            }
            guard !isNew, known ?? 0 > 0 else { return (catalog, nil) }
            let loss = CatalogLoss(path: layout.catalog, reason: "It was empty, beside files of assets.")
            logger.critical(
                "the catalog was empty: the store begins empty; jobs, origins and the policy that were set over the API are lost",
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
                "the catalog was damaged: it is put aside, and the store begins empty; jobs, origins and the policy that were set over the API are lost with it",
                metadata: ["catalog": "\(path)", "reason": "\(damage)"])
            let catalog = try openWithRoom(layout, secrets, reserve, disk, mayLose: mayLose, logger) {
                try lastRun(in: layout, disk)
            }
            return (catalog, CatalogLoss(path: path, reason: damage.description))
        }
    }

    /// On a full disk the reserve makes room, and then, where that is not enough, files of assets do: a row whose file is missing
    /// is one without bytes.
    private static func openWithRoom(
        _ layout: StoreLayout, _ secrets: SecretBox, _ reserve: Reserve, _ disk: any Disk, mayLose: Bool,
        _ logger: Logger, earlierRun: () throws -> Int64
    ) throws(CacheError) -> Catalog {
        let release = { () throws(CacheError) in _ = try reserve.release() }
        let giveUp = { () throws(CacheError) in if mayLose { try giveUpFiles(layout, disk, logger) } }
        for makeRoom in [release, giveUp] {
            do throws(CacheError) {
                // Nobody knows: it is tried.
                let hasRoom = (try? disk.freeBytes(at: layout.directory)).map { $0 >= leastRoom } ?? true
                if hasRoom { return try Catalog(path: layout.catalog, secrets: secrets, earlierRun: earlierRun) }
            } catch {
                guard error.code == .storageFull else { throw error }
            }
            try makeRoom()
        }
        return try Catalog(path: layout.catalog, secrets: secrets, earlierRun: earlierRun)
    }

    /// For the index of the catalog's log, which SQLite recovers without asking whether there is room (`SharedIndex`).
    private static let leastRoom: Int64 = 256 << 10

    /// Removes files of assets until there is room for a start and for the reserve: one that is large enough, and not larger
    /// than need be, or else the largest.
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
        let needed = 3 * Int64(Reserve.size)
        var (count, freed): (Int, Int64) = (0, 0)
        for file in files.last(where: { $0.bytes >= needed }).map({ [$0] }) ?? files where freed < needed {
            try disk.unlink(file.path)
            (count, freed) = (count + 1, freed + file.bytes)
        }
        logger.critical(
            "the disk is full, so that the catalog cannot be opened: files of assets are removed",
            metadata: ["files": "\(count)", "bytes": "\(freed)"])
    }

    /// What a clock that was set back has left of times to come. A store that cannot write that down is opened all the same.
    static func settleTimes(of catalog: Catalog, at now: Timestamp, _ reserve: Reserve, _ logger: Logger) {
        do throws(CacheError) {
            let isSetBack: Bool
            do throws(CacheError) {
                isSetBack = try catalog.settleTimes(at: now)
            } catch  where error.code == .storageFull {
                _ = try reserve.release()
                isSetBack = try catalog.settleTimes(at: now)
            }
            guard isSetBack else { return }
            logger.warning("the clock was set back since the store was used: what seems to be younger is of now")
        } catch {
            logger.error("times to come cannot be looked for in the catalog", metadata: ["error": "\(error)"])
        }
    }

    /// Makes the directories that are missing; what lies in the place of one is put aside.
    static func createShards(
        _ layout: StoreLayout, _ disk: any Disk, now: Timestamp, _ logger: Logger
    ) throws(CacheError) {
        let isNew = try disk.createDirectory(layout.assets)
        let present = isNew ? [] : Set(try disk.list(layout.assets))
        var isChanged = false
        for shard in StoreLayout.shards {
            let path = layout.shard(shard)
            // Of what is no directory there is no inside.
            if present.contains(shard), try disk.status(of: path + "/.") != nil { continue }
            isChanged = true
            if present.contains(shard) {
                let aside = "\(path).aside-\(now.milliseconds)"
                try disk.rename(path, to: aside)
                logger.error("what is no directory lay in the place of one", metadata: ["path": "\(aside)"])
            }
            _ = try disk.createDirectory(path)
        }
        if isChanged { try disk.syncDirectory(layout.assets) }
    }

    /// The last run that has left files behind: what they are named by must not be given out again, and they belong to nobody.
    private static func lastRun(in layout: StoreLayout, _ disk: any Disk) throws(CacheError) -> Int64 {
        var last: Int64 = 0
        for shard in StoreLayout.shards {
            for entry in try disk.list(layout.shard(shard)) {
                if let name = FileName(entry) { last = max(last, name.serial >> serialBits) }
            }
        }
        return last
    }

    /// Makes the store's directory, and answers whether it did. Throws `conflict` where there is one with files of others in
    /// it and nothing of a store.
    static func takeDirectory(_ layout: StoreLayout, _ disk: any Disk) throws(CacheError) -> Bool {
        if try disk.createDirectory(layout.directory) { return true }
        let names = try disk.list(layout.directory)
        // Hidden files, and what file systems make themselves, are nobody's work.
        let strangers = names.filter { !$0.hasPrefix(".") && $0 != "lost+found" }.sorted()
        // After a power cut in the first moments any one of these may be the only one; but the draft is removed, and others may
        // call a file that as well.
        let store = [layout.lock, layout.assets, layout.secretKey, layout.catalog]
        let isDraft = strangers.map { "\(layout.directory)/\($0)" } == [layout.secretKeyDraft]
        if !strangers.isEmpty, !isDraft, !names.contains(where: { store.contains("\(layout.directory)/\($0)") }) {
            throw CacheError(
                .conflict,
                "The data directory \(layout.directory) is not a store of Larder: it has \(strangers[0]) and nothing that"
                    + " Larder made. Name an empty directory, or one that is still to be made.")
        }
        return false
    }

    /// Finds out what the file system can do with holes, and says what it cannot.
    static func holes(
        in layout: StoreLayout, _ disk: any Disk, _ reserve: Reserve, _ logger: Logger
    ) throws(CacheError) -> HoleSupport {
        let holes: HoleSupport
        do throws(CacheError) {
            holes = try disk.holes(in: layout.directory)
        } catch  where error.code == .storageFull {
            return HoleSupport(areSparse: true, canBePunched: true)  // nobody knows; the next start asks again
        }
        if !holes.canBePunched {
            logger.warning(
                "no holes can be made in files of this file system: what is evicted goes with its whole file",
                metadata: ["directory": "\(layout.directory)"])
        }
        if !holes.areSparse {
            logger.warning(
                "files of this file system have no holes: an asset takes the space up to its last cached byte",
                metadata: ["directory": "\(layout.directory)"])
        }
        return holes
    }
}
