package import CacheCore

/// The disk at the level of system calls; tests inject failures here.
///
/// Every function may block, unless stated otherwise. Errors are created by `CacheError(errno:doing:path:)`.
/// Interrupted calls (EINTR) are repeated.
package protocol Disk: Sendable {
    /// Opens a file. Symbolic links are rejected, and child processes do not inherit the descriptor.
    func open(_ path: String, _ access: FileAccess) throws(CacheError) -> Descriptor
    /// Opens the file at `path` below `directory` for reading. The path cannot leave the directory. Throws `notFound`
    /// if there is no such file, or if the path leads out of the directory.
    func openBelow(_ directory: String, _ path: String) throws(CacheError) -> Descriptor
    /// Closes the descriptor. This does not sync written bytes.
    func close(_ descriptor: Descriptor)
    /// Reads at `offset`; returns the number of bytes, 0 at the end of the file. May return fewer bytes than requested.
    func read(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int
    /// As `read`, but only from the page cache. Returns nil if the call would have to wait for the disk, or fails.
    func readFromPageCache(_ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64)
        -> Int?
    /// Whether the results of `drops` are reliable in this directory: not every file system keeps its pages in the page
    /// cache only. Creates a temporary file.
    func tellsReferences(in directory: String) -> Bool
    /// Tests whether files in this directory can be sparse, and whether holes can be punched. Creates a temporary file.
    func holes(in directory: String) throws(CacheError) -> HoleSupport
    /// Whether all bytes of `range` are in the page cache, so that `sendfile` does not wait for the disk. False if the
    /// kernel does not report it.
    func isCached(_ descriptor: Descriptor, _ range: ByteRange) -> Bool
    /// Drops the clean, unreferenced pages of `block` from the page cache; returns whether no page of `range` is left
    /// there.
    func drops(_ descriptor: Descriptor, _ range: ByteRange, of block: ByteRange) -> Bool
    /// Writes at `offset`; returns the number of bytes, which may be fewer than given.
    func write(
        _ descriptor: Descriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int
    /// Deallocates the blocks of `range`. Its bytes then read as zeros; the file's size is unchanged.
    func punch(_ descriptor: Descriptor, _ range: ByteRange) throws(CacheError)
    /// Sets the file's size. Bytes beyond it are lost.
    func truncate(_ descriptor: Descriptor, to size: Int64) throws(CacheError)
    /// Starts to write the file's bytes to the device, so that the `sync` of several files is one write. A hint: an error
    /// is reported by `sync`.
    func startSync(_ descriptor: Descriptor)
    /// Returns when the file's bytes, and the metadata needed to read them, are on the device (`fdatasync`).
    func sync(_ descriptor: Descriptor) throws(CacheError)
    /// Size and disk usage of an open file, even after its name was removed.
    func status(_ descriptor: Descriptor) throws(CacheError) -> FileStatus
    /// Size and disk usage of the file at `path`; nil if there is none.
    func status(of path: String) throws(CacheError) -> FileStatus?
    /// The names in a directory, unsorted, without `.` and `..`.
    func list(_ directory: String) throws(CacheError) -> [String]
    /// Those of the names that are directories, or links to directories, in a directory. Others are not looked at.
    func directories(in directory: String, named names: Set<String>) throws(CacheError) -> Set<String>
    /// Creates a directory with mode 0700; returns false if it exists already.
    func createDirectory(_ path: String) throws(CacheError) -> Bool
    /// Returns when the directory's entries are on the device (`fsync`).
    func syncDirectory(_ path: String) throws(CacheError)
    /// Renames a file atomically, replacing an existing one.
    func rename(_ path: String, to newPath: String) throws(CacheError)
    /// Removes a file's name. No effect if there is no such file.
    func unlink(_ path: String) throws(CacheError)
    /// Acquires a lock, which several processes can hold if all theirs are shared; returns false if another process holds
    /// it. Closing the descriptor releases the lock.
    func lock(_ descriptor: Descriptor, isShared: Bool) throws(CacheError) -> Bool
    /// Bytes that can still be written to the file system of `path`.
    func freeBytes(at path: String) throws(CacheError) -> Int64
}

extension Disk {
    package func startSync(_ descriptor: Descriptor) {}
}

/// A file system's support for holes.
package struct HoleSupport: Hashable, Sendable {
    /// Whether unwritten ranges occupy no disk space.
    package var areSparse: Bool
    /// Whether ranges in the middle of a file can be deallocated.
    package var canBePunched: Bool
}

/// A file descriptor.
package struct Descriptor: Hashable, Sendable {
    package let number: Int32
}

/// Access mode for opening a file.
package enum FileAccess: Sendable {
    case readOnly
    case readWrite
    /// Read and write; the file must not exist. Created with mode 0600.
    case create
    /// Read and write; created with mode 0600 if it does not exist.
    case openOrCreate
}

/// Size and disk usage of a file.
package struct FileStatus: Hashable, Sendable {
    /// Apparent size: the offset after the last byte.
    package var size: Int64
    /// Disk usage in bytes: the allocated blocks.
    package var diskBytes: Int64
    /// Whether it is a regular file: no directory, link, pipe or device.
    package var isRegular = true
}
