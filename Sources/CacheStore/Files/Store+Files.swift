package import CacheCore
import Glibc
import Synchronization

extension Store {
    /// A new, empty file for one generation. The catalog knows it only after `CommitQueue.began`; until then a restart
    /// removes it.
    package func createFile(asset: AssetID, generation: Int64) throws(CacheError) -> SparseFile {
        let serial = lastSerial.wrappingAdd(1, ordering: .relaxed).newValue
        let name = FileName(asset: asset, generation: generation, serial: serial)
        let path = layout.path(of: name)
        // Serials repeat only after a catalog was lost: what is there then belongs to nobody.
        if try disk.status(of: path) != nil { try disk.unlink(path) }
        let descriptor = try shelf.open { () throws(CacheError) in try self.create(path, in: name.shard) }
        return openFiles.add(file(name, path, descriptor), serial: serial).file
    }

    /// Where somebody has removed the directory, it is made again.
    private func create(_ path: String, in shard: String) throws(CacheError) -> Descriptor {
        do throws(CacheError) {
            return try disk.open(path, .create)
        } catch  where (error.cause as? SystemCallError)?.number == ENOENT {
            guard try isInPlace() else {
                throw CacheError(.storageCorrupt, "The data directory is gone.", cause: error)
            }
            _ = try disk.createDirectory(layout.assets)
            _ = try disk.createDirectory(layout.shard(shard))
            try disk.syncDirectory(layout.assets)
            return try disk.open(path, .create)
        }
    }

    /// Whether the directory is there still; blocks for a moment.
    package func isInPlace() throws(CacheError) -> Bool { try disk.status(of: layout.catalog) != nil }

    /// A new, empty file that nobody finds again: for what may be passed on but not kept.
    /// Where the disk gives no file it is in memory, and takes only as much as there is to spare.
    package func createTransient() throws(CacheError) -> SparseFile {
        do throws(CacheError) {
            return try createUnnamed()
        } catch  where error.code != .overloaded {
            shelf.spill.refusals.add(1, ordering: .relaxed)
            let descriptor = try shelf.open { () throws(CacheError) in try SystemDisk().open("/dev/null", .readWrite) }
            return SparseFile(
                name: nil, path: nil, descriptor: descriptor, isInMemory: true, disk: disk, shelf: shelf)
        }
    }

    private func createUnnamed() throws(CacheError) -> SparseFile {
        let serial = lastSerial.wrappingAdd(1, ordering: .relaxed).newValue
        let path = layout.directory + "/transient-" + String(serial, radix: 16)
        let descriptor = try shelf.open { () throws(CacheError) in try disk.open(path, .create) }
        do throws(CacheError) {
            try disk.unlink(path)
        } catch {
            shelf.drop(descriptor)
            throw error
        }
        return SparseFile(name: nil, path: nil, descriptor: descriptor, disk: disk, shelf: shelf)
    }

    /// The file of that name, the same object for everybody; nil where it is not there. Blocks.
    ///
    /// The descriptor of a file whose name goes must not be closed, since nothing would lead back to the bytes:
    ///
    /// 1. `unlink` writes down that the name goes, and keeps what is open under it; then it takes the name away.
    /// 2. A file that is being opened is kept from the beginning. It is in the table before the name is gone, or is not
    ///    found: either `unlink` sees it there and keeps it, or it sees here what `unlink` has written down.
    /// 3. Where it sees nothing, the name may be gone already since it was opened: hence the look behind.
    package func openFile(_ name: FileName) throws(CacheError) -> SparseFile? {
        if let file = openFiles.file(serial: name.serial), !file.hasVanished { return file }
        let path = layout.path(of: name)
        guard let descriptor = try openIfThere(path) else { return nil }
        let opened = file(name, path, descriptor, isKept: true)
        let (file, isLeaving) = openFiles.add(opened, serial: name.serial)
        if file === opened, !isLeaving, try disk.status(of: path) != nil { file.unkeep() }
        return file
    }

    /// What is no file of bytes, whoever put it there, is not there.
    private func openIfThere(_ path: String) throws(CacheError) -> Descriptor? {
        do throws(CacheError) {
            let descriptor = try shelf.open { () throws(CacheError) in try disk.open(path, .readWrite) }
            var isKept = false
            defer { if !isKept { shelf.drop(descriptor) } }
            isKept = try disk.status(descriptor).isRegular
            return isKept ? descriptor : nil
        } catch  where error.isOfNoFile {
            return nil
        }
    }

    private func file(
        _ name: FileName, _ path: String, _ descriptor: Descriptor, isKept: Bool = false
    ) -> SparseFile {
        SparseFile(
            name: name, path: path, descriptor: descriptor, isKept: isKept, disk: disk, shelf: shelf
        ) { [openFiles] in
            openFiles.removeClosed(serial: name.serial)
        }
    }

    /// Takes a file's name away; whoever holds the file goes on with it. Throws `.overloaded` where that would take a
    /// descriptor that cannot be had: the name stays then.
    func unlink(_ name: FileName) throws(CacheError) {
        defer { openFiles.left(serial: name.serial) }
        try openFiles.leaves(serial: name.serial)?.keep()
        try disk.unlink(layout.path(of: name))
    }

    /// Takes the names of these assets' files away that nobody holds, before the catalog knows: a row whose file is missing is
    /// one without bytes, whenever it is met. For the case that nothing can be committed any more; answers whether there was one.
    func unlinkEarly(_ assets: Set<AssetID>) throws(CacheError) -> Bool {
        let names = try catalog.files(of: assets).filter { openFiles.file(serial: $0.serial) == nil }
        for name in names { try disk.unlink(layout.path(of: name)) }
        return !names.isEmpty
    }
}
