package import CacheCore
import Cryptography
import Glibc
import Synchronization

/// Files of assets: creating, opening and unlinking.
extension Store {
    /// Creates an empty file for one generation. The catalog references it only after `CommitQueue.began`; a restart
    /// before that removes the file. `isEncrypted`: its bytes are stored encrypted, with a key of its own.
    ///
    /// Throws `storageFull`, `overloaded`, or `encryptionKeyMissing` if no master key can seal the key of the file.
    package func createFile(
        asset: AssetID, generation: Int64, isEncrypted: Bool = false
    ) throws(CacheError) -> SparseFile {
        let serial = lastSerial.wrappingAdd(1, ordering: .relaxed).newValue
        let cipher = isEncrypted ? try newCipher(of: serial) : nil
        let name = FileName(asset: asset, generation: generation, serial: serial)
        let path = layout.path(of: name)
        // Serials repeat only after the loss of a catalog. An existing file is then an orphan.
        if try disk.status(of: path) != nil { try disk.unlink(path) }
        let descriptor = try descriptors.open { () throws(CacheError) in try self.create(path, in: name.shard) }
        return openFiles.add(file(name, path, descriptor, cipher), serial: serial).file
    }

    /// A new key for a file, sealed with the active master key.
    private func newCipher(of serial: Int64) throws(CacheError) -> FileCipher {
        let key = SymmetricKey(SymmetricKey.randomBytes(32))
        let sealed = try SealedKey(key, of: serial, with: try masterKeys.active())
        catalog.hasEncryptedFiles.store(true, ordering: .relaxed)
        return FileCipher(sealedKey: sealed, key: key)
    }

    /// The cipher of a stored file; nil if it is not encrypted. It is locked if its master key is missing. Blocks.
    private func storedCipher(of serial: Int64) throws(CacheError) -> FileCipher? {
        guard catalog.hasEncryptedFiles.load(ordering: .relaxed), let (sealed, runs) = try catalog.cipher(of: serial)
        else { return nil }
        return FileCipher(sealedKey: sealed, runs: runs) { [masterKeys] in
            masterKeys.key(sealed.masterKey).flatMap { sealed.opened(with: $0, of: serial) }
        }
    }

    /// Creates the file. Recreates its directory if somebody has removed it. Throws `storageCorrupt` if the whole data
    /// directory is gone.
    private func create(_ path: String, in shard: String) throws(CacheError) -> Descriptor {
        do throws(CacheError) {
            return try disk.open(path, .create)
        } catch  where (error.cause as? SystemCallError)?.number == ENOENT {
            guard try isInPlace() else {
                throw CacheError(.storageCorrupt, "The data directory is missing; restore it.", cause: error)
            }
            _ = try disk.createDirectory(layout.assets)
            _ = try disk.createDirectory(layout.shard(shard))
            try disk.syncDirectory(layout.assets)
            return try disk.open(path, .create)
        }
    }

    /// Whether the data directory still contains the catalog. Blocks for a moment.
    package func isInPlace() throws(CacheError) -> Bool { try disk.status(of: layout.catalog) != nil }

    /// Creates an empty file without a name, for bytes that may be forwarded but not kept. If the disk cannot create
    /// it, the bytes are kept in memory, within the budget. `isEncrypted`: with a key that only this process has.
    package func createTransient(isEncrypted: Bool = false) throws(CacheError) -> SparseFile {
        do throws(CacheError) {
            return try createUnnamed(
                isEncrypted ? FileCipher(sealedKey: nil, key: SymmetricKey(SymmetricKey.randomBytes(32))) : nil)
        } catch  where error.code != .overloaded {
            descriptors.spill.refusals.add(1, ordering: .relaxed)
            return try createInMemory()
        }
    }

    /// Creates a file without a name that keeps its bytes in memory, within the budget for spilled bytes.
    package func createInMemory(holding bytes: [UInt8] = []) throws(CacheError) -> SparseFile {
        let descriptor = try descriptors.open { () throws(CacheError) in
            try SystemDisk().open("/dev/null", .readWrite)
        }
        let file = SparseFile(
            name: nil, path: nil, descriptor: descriptor, isInMemory: true, disk: disk, descriptors: descriptors)
        try bytes.withUnsafeBufferPointer { bytes throws(CacheError) in
            try file.write(UnsafeRawBufferPointer(bytes), at: 0)
        }
        return file
    }

    /// Creates a file on disk and removes its name at once.
    private func createUnnamed(_ cipher: FileCipher?) throws(CacheError) -> SparseFile {
        let serial = lastSerial.wrappingAdd(1, ordering: .relaxed).newValue
        let path = layout.directory + "/transient-" + String(serial, radix: 16)
        let descriptor = try descriptors.open { () throws(CacheError) in try disk.open(path, .create) }
        do throws(CacheError) {
            try disk.unlink(path)
        } catch {
            descriptors.drop(descriptor)
            throw error
        }
        return SparseFile(
            name: nil, path: nil, descriptor: descriptor, cipher: cipher, disk: disk, descriptors: descriptors)
    }

    /// Opens the file of that name; nil if it does not exist. All callers get the same object. Blocks.
    ///
    /// The descriptor of a file without a name must not be closed, because the file could not be reopened. Therefore:
    ///
    /// 1. `unlink` records the removal in `openFiles`, and keeps the descriptor of the open object; then it removes the
    ///    name.
    /// 2. A file that is being opened keeps its descriptor from the start. If it is registered before step 1, `unlink`
    ///    finds it and keeps it. Otherwise it finds the recorded removal here.
    /// 3. If it finds no record, the removal may already be complete. The name is therefore checked once more before
    ///    the descriptor is released.
    func openFile(_ name: FileName) throws(CacheError) -> SparseFile? {
        if let file = openFiles.file(serial: name.serial), !file.hasVanished { return file }
        let path = layout.path(of: name)
        guard let descriptor = try openIfThere(path) else { return nil }
        let opened = file(name, path, descriptor, try cipher(of: name, orDrop: descriptor), isKept: true)
        opened.assumeLent()
        let (file, isLeaving) = openFiles.add(opened, serial: name.serial)
        if file === opened, !isLeaving, try disk.status(of: path) != nil { file.unkeep() }
        // The key can have been read before an erasure, which did not find the file in the registry.
        if erased.withLock({ $0.contains(name.serial) }) { file.cipher?.destroy() }
        return file
    }

    /// As `storedCipher`; closes the descriptor of the file before it throws.
    private func cipher(of name: FileName, orDrop descriptor: Descriptor) throws(CacheError) -> FileCipher? {
        do throws(CacheError) { return try storedCipher(of: name.serial) } catch {
            descriptors.drop(descriptor)
            throw error
        }
    }

    /// Opens a regular file; nil if the path leads to nothing or to anything else.
    private func openIfThere(_ path: String) throws(CacheError) -> Descriptor? {
        do throws(CacheError) {
            let descriptor = try descriptors.open { () throws(CacheError) in try disk.open(path, .readWrite) }
            var isKept = false
            defer { if !isKept { descriptors.drop(descriptor) } }
            isKept = try disk.status(descriptor).isRegular
            return isKept ? descriptor : nil
        } catch  where error.isOfNoFile {
            return nil
        }
    }

    /// Creates the object for an opened file; it leaves the registry when it is released.
    private func file(
        _ name: FileName, _ path: String, _ descriptor: Descriptor, _ cipher: FileCipher?, isKept: Bool = false
    ) -> SparseFile {
        SparseFile(
            name: name, path: path, descriptor: descriptor, isKept: isKept, cipher: cipher, disk: disk,
            descriptors: descriptors
        ) { [openFiles] in
            openFiles.removeClosed(serial: name.serial)
        }
    }

    /// Removes a file's name. Readers that hold the file can still use it. Throws `overloaded` if no descriptor is free
    /// to keep the file open; then the name stays.
    func unlink(_ name: FileName) throws(CacheError) {
        defer { openFiles.left(serial: name.serial) }
        try openFiles.leaves(serial: name.serial)?.keep()
        try disk.unlink(layout.path(of: name))
        erased.withLock { _ = $0.remove(name.serial) }
    }

    /// As `unlink`. Returns the disk usage of the file before.
    func unlinkMeasured(_ name: FileName) throws(CacheError) -> Int64 {
        let bytes = try disk.status(of: layout.path(of: name))?.diskBytes ?? 0
        try unlink(name)
        return bytes
    }

    /// Unlinks the closed files of these assets before the catalog removes their rows; returns whether there were any.
    /// Used if no commit is possible. It is safe, because a row with a missing file counts as a row without bytes.
    func unlinkEarly(_ assets: Set<AssetID>) throws(CacheError) -> Bool {
        let names = try catalog.files(of: assets).filter { openFiles.file(serial: $0.serial) == nil }
        for name in names { try disk.unlink(layout.path(of: name)) }
        return !names.isEmpty
    }
}
