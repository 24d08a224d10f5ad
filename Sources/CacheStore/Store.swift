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
    private let openFiles = OpenFiles()
    private let lock: DirectoryLock
    private let lastSerial: Atomic<Int64>

    private init(
        layout: StoreLayout, disk: any Disk, logger: Logger, lock: DirectoryLock, catalog: Catalog, reserve: Reserve
    ) {
        self.layout = layout
        self.disk = disk
        self.logger = logger
        self.lock = lock
        self.catalog = catalog
        self.reserve = reserve
        lastSerial = Atomic(catalog.run << Self.serialBits)
    }

    /// The low bits of a serial count the files of one run; the high ones count the runs.
    static let serialBits = 32

    /// Opens the store in `directory`, or makes one there (mode 0700; the parent must exist); blocks for a moment.
    ///
    /// Serving may begin when this returns; `reconcile` tidies up afterwards. Throws `conflict` where another process
    /// uses the directory, or where a newer version wrote its catalog.
    package static func open(
        directory: String, disk: any Disk = SystemDisk(), wallClock: any WallClock, logger: Logger
    ) throws(CacheError) -> Store {
        let layout = StoreLayout(directory: directory)
        _ = try disk.createDirectory(layout.directory)
        let lock = try DirectoryLock(layout, disk: disk, now: wallClock.now())
        try createShards(layout, disk)
        let isNew = try disk.status(of: layout.catalog) == nil
        let hasKey = try disk.status(of: layout.secretKey) != nil
        guard isNew || hasKey else {
            throw CacheError(
                .storageCorrupt, "\(layout.secretKey) is missing, so the catalog beside it cannot be read.")
        }
        let reserve = Reserve(layout, disk: disk)
        let catalog = try openCatalog(layout, try SecretBox(layout, disk: disk), reserve)
        try reserve.keep()
        try disk.syncDirectory(layout.directory)
        return Store(
            layout: layout, disk: disk, logger: logger, lock: lock, catalog: catalog, reserve: reserve)
    }

    private static func openCatalog(
        _ layout: StoreLayout, _ secrets: SecretBox, _ reserve: Reserve
    ) throws(CacheError) -> Catalog {
        do throws(CacheError) {
            return try Catalog(path: layout.catalog, secrets: secrets)
        } catch {
            guard error.code == .storageFull, try reserve.release() else { throw error }
            return try Catalog(path: layout.catalog, secrets: secrets)
        }
    }

    private static func createShards(_ layout: StoreLayout, _ disk: any Disk) throws(CacheError) {
        let isNew = try disk.createDirectory(layout.assets)
        let present = isNew ? [] : Set(try disk.list(layout.assets))
        guard !present.isSuperset(of: StoreLayout.shards) else { return }
        for shard in StoreLayout.shards where !present.contains(shard) {
            _ = try disk.createDirectory(layout.shard(shard))
        }
        try disk.syncDirectory(layout.assets)
    }

    /// A new, empty file for one generation. The catalog knows it only after `CommitQueue.began`; until then a restart
    /// removes it.
    package func createFile(asset: AssetID, generation: Int64) throws(CacheError) -> SparseFile {
        let serial = lastSerial.wrappingAdd(1, ordering: .relaxed).newValue
        let name = FileName(asset: asset, generation: generation, serial: serial)
        let path = layout.path(of: name)
        // Serials repeat only after a catalog was lost: what is there then belongs to nobody.
        if try disk.status(of: path) != nil { try disk.unlink(path) }
        return adopt(try disk.open(path, .create), name, path)
    }

    /// A new, empty file that nobody finds again: for what may be passed on but not kept.
    package func createTransient() throws(CacheError) -> SparseFile {
        let serial = lastSerial.wrappingAdd(1, ordering: .relaxed).newValue
        let path = layout.directory + "/transient-" + String(serial, radix: 16)
        let descriptor = try disk.open(path, .create)
        do throws(CacheError) {
            try disk.unlink(path)
        } catch {
            disk.close(descriptor)
            throw error
        }
        return SparseFile(name: nil, path: nil, descriptor: descriptor, disk: disk)
    }

    /// The file of that name, the same object for everybody; nil where it is not there. Blocks.
    package func openFile(_ name: FileName) throws(CacheError) -> SparseFile? {
        if let file = openFiles.file(serial: name.serial) { return file }
        let path = layout.path(of: name)
        guard try disk.status(of: path) != nil else { return nil }
        return adopt(try disk.open(path, .readWrite), name, path)
    }

    private func adopt(_ descriptor: Descriptor, _ name: FileName, _ path: String) -> SparseFile {
        let file = SparseFile(name: name, path: path, descriptor: descriptor, disk: disk) { [openFiles] in
            openFiles.removeClosed(serial: name.serial)
        }
        return openFiles.add(file, serial: name.serial)
    }

    /// What may still be written to the store's file system.
    package func freeDiskBytes() throws(CacheError) -> Int64 { try disk.freeBytes(at: layout.directory) }

    /// Ends the use of the catalog and gives the directory free; whatever is not committed by now is lost.
    package func close() throws(CacheError) {
        try catalog.close()
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
