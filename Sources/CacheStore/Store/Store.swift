package import CacheCore
package import Logging
import Dispatch
import Synchronization

/// The shelf: a directory that holds the assets' files and the catalog, used by one process at a time.
package final class Store: Sendable {
    package let layout: StoreLayout
    package let catalog: Catalog
    let disk: any Disk
    let reserve: Reserve
    let logger: Logger
    /// Where slow work on files is done, so that no thread of the shared pool waits for the disk.
    let diskQueue = DispatchQueue(label: "larder.store.disk", qos: .utility, attributes: .concurrent)
    let shelf: DescriptorShelf
    let openFiles = OpenFiles()
    /// What the file system can do with holes; where none can be made, whole files are to go.
    package let holes: HoleSupport
    /// Why the store began without a byte, where its catalog was damaged.
    package let loss: CatalogLoss?
    private let lock: DirectoryLock
    let lastSerial: Atomic<Int64>
    let damagedRows: Atomic<Int64>

    private init(
        layout: StoreLayout, disk: any Disk, shelf: DescriptorShelf, logger: Logger, lock: DirectoryLock,
        catalog: Catalog, reserve: Reserve, holes: HoleSupport, loss: CatalogLoss?
    ) {
        self.layout = layout
        self.disk = disk
        self.shelf = shelf
        self.logger = logger
        self.lock = lock
        self.catalog = catalog
        self.reserve = reserve
        self.holes = holes
        self.loss = loss
        lastSerial = Atomic(catalog.run << Self.serialBits)
        damagedRows = Atomic(Int64(catalog.damagedRows.count))
    }

    /// Whether the catalog was found damaged since the store was opened; the next opening looks at all of it.
    package var isDamaged: Bool { catalog.isDamaged.load(ordering: .relaxed) }

    /// Whether what is fetched can be kept: the last commit has not met a damaged catalog.
    package var canKeep: Bool { !catalog.isStuck.load(ordering: .relaxed) }

    /// Rows of the catalog that were not what was written, and were taken out since the start began.
    package var damagedRowCount: Int64 { damagedRows.load(ordering: .relaxed) }

    /// The low bits of a serial count the files of one run; the high ones count the runs.
    static let serialBits = 32

    /// Opens the store in `directory`, or makes one there (mode 0700; the parent must exist); blocks for a moment.
    ///
    /// Serving may begin when this returns; `reconcile` tidies up afterwards. Throws `conflict` where another process
    /// uses the directory, or where a newer version wrote its catalog. A catalog that is damaged is put aside, and the store
    /// begins without a byte: `loss` says so.
    ///
    /// - Parameter mayLose: whether that may be done; else it throws `storageCorrupt`.
    /// - Parameter openFileLimit: how many files of assets keep a descriptor, those in use at once apart.
    package static func open(
        directory: String, disk: any Disk = SystemDisk(), openFileLimit: Int = 256, mayLose: Bool = true,
        wallClock: any WallClock, logger: Logger
    ) throws(CacheError) -> Store {
        let layout = StoreLayout(directory: directory)
        if try takeDirectory(layout, disk) { syncParent(of: layout, disk, logger) }
        let lock = try DirectoryLock(layout, disk: disk, now: wallClock.now())
        try createShards(layout, disk, now: wallClock.now(), logger)
        let isNew = try disk.status(of: layout.catalog) == nil
        let hasKey = try disk.status(of: layout.secretKey) != nil
        guard isNew || hasKey else {
            throw CacheError(
                .storageCorrupt, "\(layout.secretKey) is missing, so the catalog beside it cannot be read.")
        }
        let spill = SpillAllowance()
        let reserve = Reserve(layout, disk: disk, spill: spill)
        let secrets = try SecretBox(layout, disk: disk)
        let (catalog, loss) = try openCatalog(
            layout, secrets, reserve, disk, isNew: isNew, mayLose: mayLose, now: wallClock.now(), logger)
        settleTimes(of: catalog, at: wallClock.now(), reserve, logger)
        for row in catalog.damagedRows {
            logger.error("a row of the catalog was damaged and is left out", metadata: ["row": "\(row)"])
        }
        try reserve.keep()
        try disk.syncDirectory(layout.directory)
        return Store(
            layout: layout, disk: disk,
            shelf: DescriptorShelf(
                limit: openFileLimit, disk: disk, tellsReferences: disk.tellsReferences(in: layout.directory),
                spill: spill),
            logger: logger, lock: lock, catalog: catalog, reserve: reserve,
            holes: try holes(in: layout, disk, reserve, logger), loss: loss)
    }

    /// A directory that is not durable itself keeps nothing that is synced in it.
    private static func syncParent(of layout: StoreLayout, _ disk: any Disk, _ logger: Logger) {
        do throws(CacheError) {
            try disk.syncDirectory(layout.parent)
        } catch {
            // It may be one that nobody may read; the store is none the worse but for a power cut in its first seconds.
            logger.warning("the new data directory's name could not be synced", metadata: ["error": "\(error)"])
        }
    }

    /// How many bytes may still be kept in memory for readers in place of the disk.
    package var spareMemory: Int64 { shelf.spill.spare }

    /// How many writes and new files the disk has refused: by a quota, say, whatever it tells of its free space.
    package var refusedWrites: UInt64 { shelf.spill.refusals.load(ordering: .relaxed) }

    /// Whether what is fetched goes to memory rather than to the disk, as long as it has room there: the disk may not take more.
    package func spareDisk(_ isWanted: Bool) { shelf.spill.sparesDisk.store(isWanted, ordering: .relaxed) }

    /// What may still be written to the store's file system.
    package func freeDiskBytes() throws(CacheError) -> Int64 { try disk.freeBytes(at: layout.directory) }

    /// Ends the use of the catalog and gives the directory free; whatever is not committed by now is lost. After an end that
    /// is not orderly the next start has everything checked before it is used.
    package func close(isOrderly: Bool = true) throws(CacheError) {
        try catalog.close(isOrderly: isOrderly)
        lock.release()
    }

    /// Does blocking work on files away from the caller's thread.
    func onDiskQueue<Value: Sendable>(
        _ work: @escaping @Sendable () throws(CacheError) -> Value
    ) async throws(CacheError) -> Value {
        let outcome: Result<Value, CacheError> = await withCheckedContinuation { continuation in
            diskQueue.async {
                do throws(CacheError) {
                    continuation.resume(returning: .success(try work()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try outcome.get()
    }
}
