package import CacheCore
package import Logging
import Dispatch
import Synchronization

/// The directory with the files of assets and the catalog. One process uses it at a time.
package final class Store: Sendable {
    /// Paths in the directory.
    package let layout: StoreLayout
    /// The durable index.
    package let catalog: Catalog
    /// The items of large jobs that the catalog does not have yet.
    package let jobSpools: JobSpools
    let disk: any Disk
    /// The keys that seal the keys of encrypted files.
    package let masterKeys: MasterKeys
    /// Disk space for commits on a full disk.
    let reserve: EmergencyReserve
    let logger: Logger
    /// Queue for blocking work on files, so that no thread of the concurrency pool waits for the disk.
    let diskQueue = DispatchQueue(label: "larder.store.disk", qos: .utility, attributes: .concurrent)
    /// Descriptors of the files of assets.
    let descriptors: FileDescriptorCache
    /// The serials of files whose keys this run has erased, until they are unlinked.
    let erased = OrderedMutex<Set<Int64>>(.leaf, [])
    /// The open files, one object per file.
    let openFiles = OpenFiles()
    /// The file system's support for holes. Without hole punching only whole files can be evicted.
    package let holes: HoleSupport
    /// Set if the store started empty because its catalog was damaged or empty.
    package let loss: CatalogReset?
    /// Held until `close`.
    private let lock: DirectoryLock
    private let formerReaders: FormerReaders
    /// The last file serial that this run assigned.
    let lastSerial: Atomic<Int64>
    /// Number of deleted damaged rows.
    let damagedRows: Atomic<Int64>

    private init(
        layout: StoreLayout, disk: any Disk, masterKeys: MasterKeys, descriptors: FileDescriptorCache, logger: Logger,
        lock: DirectoryLock, formerReaders: FormerReaders,
        catalog: Catalog, reserve: EmergencyReserve, holes: HoleSupport, loss: CatalogReset?
    ) {
        self.layout = layout
        self.disk = disk
        self.masterKeys = masterKeys
        self.descriptors = descriptors
        self.logger = logger
        self.lock = lock
        self.formerReaders = formerReaders
        self.catalog = catalog
        jobSpools = JobSpools(layout: layout, disk: disk, secrets: catalog.secrets)
        self.reserve = reserve
        self.holes = holes
        self.loss = loss
        lastSerial = Atomic(catalog.run << Self.serialBits)
        damagedRows = Atomic(Int64(catalog.damagedRows.count))
    }

    /// Whether corruption of the catalog was found since the start. The next start then checks it completely.
    package var isDamaged: Bool { catalog.isDamaged.load(ordering: .relaxed) }

    /// Whether fetched bytes can be kept: the last commit did not fail because of a damaged catalog.
    package var canKeep: Bool { !catalog.isStuck.load(ordering: .relaxed) }

    /// Number of damaged catalog rows that were deleted, including those of the start.
    package var damagedRowCount: Int64 { damagedRows.load(ordering: .relaxed) }

    /// Width of the low part of a file serial; it counts the files of one run. The high part is the run's number.
    static let serialBits = 32

    /// Opens the store in `directory`, or creates one (mode 0700; the parent must exist). Blocks for a moment.
    ///
    /// Serving can start on return; call `reconcile` afterwards. Throws `conflict` if another process uses the
    /// directory, if a newer version wrote its catalog, or if the directory contains foreign files only. A damaged
    /// catalog is quarantined, and the store starts empty, as `loss` reports.
    ///
    /// - Parameter openFileLimit: maximum number of open files of assets, unless more are in use at once.
    /// - Parameter masterKeys: the keys of encrypted files.
    /// - Parameter mayLose: whether a damaged catalog may be replaced; otherwise `storageCorrupt` is thrown.
    package static func open(
        directory: String, disk: any Disk = SystemDisk(), masterKeys: MasterKeys = MasterKeys(),
        openFileLimit: Int = 256, mayLose: Bool = true, wallClock: any WallClock, logger: Logger
    ) throws(CacheError) -> Store {
        let layout = StoreLayout(directory: directory)
        // The lock protects everything that follows. Only the directory itself is created without it.
        if try takeDirectory(layout, disk) { syncParent(of: layout, disk, logger) }
        let lock = try DirectoryLock(layout, disk: disk, now: wallClock.now())
        try createShards(layout, disk, now: wallClock.now(), logger)
        let isNew = try disk.status(of: layout.catalog) == nil
        let hasKey = try disk.status(of: layout.secretKey) != nil
        // Never create a new key beside an existing catalog: its sealed columns would be unreadable.
        guard isNew || hasKey else {
            throw CacheError(
                .storageCorrupt, "\(layout.secretKey) is missing, so the catalog cannot be decrypted; restore it.")
        }
        let spill = SpillAllowance()
        let reserve = EmergencyReserve(layout, disk: disk, spill: spill)
        let secrets = try SecretBox(layout, disk: disk)
        let (catalog, loss) = try openCatalog(
            layout, secrets, reserve, disk, isNew: isNew, mayLose: mayLose, now: wallClock.now(), logger)
        clampFutureTimestamps(of: catalog, at: wallClock.now(), reserve, logger)
        for row in catalog.damagedRows {
            logger.error("a catalog row was damaged and has been deleted", metadata: ["row": "\(row)"])
        }
        try reserve.keep()
        try disk.syncDirectory(layout.directory)
        return Store(
            layout: layout, disk: disk, masterKeys: masterKeys,
            descriptors: FileDescriptorCache(
                limit: openFileLimit, disk: disk, tellsReferences: disk.tellsReferences(in: layout.directory),
                spill: spill),
            logger: logger, lock: lock, formerReaders: try FormerReaders(layout, disk: disk), catalog: catalog,
            reserve: reserve,
            holes: try holes(in: layout, disk, reserve, logger), loss: loss)
    }

    /// Makes the new directory's own entry durable. Otherwise a power loss could remove the directory with everything
    /// in it.
    private static func syncParent(of layout: StoreLayout, _ disk: any Disk, _ logger: Logger) {
        do throws(CacheError) {
            try disk.syncDirectory(layout.parent)
        } catch {
            // The parent directory may be unreadable. Then only a power loss soon after the creation is dangerous.
            logger.warning("the parent of the new data directory cannot be synced", metadata: ["error": "\(error)"])
        }
    }

    /// Free part of the memory budget for spilled bytes.
    package var spareMemory: Int64 { descriptors.spill.spare }

    /// Number of writes and file creations that the disk refused, for example because of a quota. The file system's
    /// free space does not show quotas.
    package var refusedWrites: UInt64 { descriptors.spill.refusals.load(ordering: .relaxed) }

    /// Whether fetched bytes go to memory first.
    package var prefersMemory: Bool { descriptors.spill.sparesDisk.load(ordering: .relaxed) }

    /// Sets whether fetched bytes go to memory first, as long as the budget lasts, because the disk usage is at its
    /// limit.
    package func preferMemory(_ isWanted: Bool) { descriptors.spill.sparesDisk.store(isWanted, ordering: .relaxed) }

    /// Free space of the store's file system, in bytes.
    package func freeDiskBytes() throws(CacheError) -> Int64 { try disk.freeBytes(at: layout.directory) }

    /// Closes the catalog and releases the directory. Work that is not committed is lost. After an unclean shutdown
    /// (`isOrderly` false) the next start verifies bytes before their use.
    package func close(isOrderly: Bool = true) throws(CacheError) {
        try catalog.close(isOrderly: isOrderly)
        lock.release()
    }

    /// Releases the directory for the next process. Until `close` this process may go on reading the catalog and the files
    /// of assets; it must not write to them. The next process keeps the bytes that are stored now
    /// (``isReadByFormerProcess``).
    package func handOver() throws(CacheError) {
        try formerReaders.join()
        try catalog.endWrites(isOrderly: true)
        lock.release()
    }

    /// Whether a process that has handed the store over still reads its files. Then no byte that was stored before this
    /// process is punched, and eviction waits.
    package var isReadByFormerProcess: Bool { formerReaders.exist }

    /// The process that uses the store in `directory`, as in `process 12 since 2026-01-01T00:00:00Z`; nil: none.
    package static func holder(of directory: String, disk: any Disk = SystemDisk()) throws(CacheError) -> String? {
        try DirectoryLock.holder(in: StoreLayout(directory: directory), disk: disk)
    }

    /// Runs blocking work on files off the caller's thread.
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
