package import CacheCore

/// The door to the disk, at the level of system calls: where tests make the n-th call fail.
///
/// Every function may block. Errors are made by `CacheError(errno:doing:path:)`; an interrupted call is made again.
package protocol Disk: Sendable {
    /// Opens a file that is no symbolic link; not inherited by child processes.
    func open(_ path: String, _ access: FileAccess) throws(CacheError) -> Descriptor
    /// Opens what is at `path` below `directory` to read; nothing leads out of there. Throws `.notFound` where there is
    /// nothing, or the way leads out.
    func openBelow(_ directory: String, _ path: String) throws(CacheError) -> Descriptor
    /// Gives the number back; what was written is not thereby on the device.
    func close(_ descriptor: Descriptor)
    /// Answers how many bytes were read, 0 at the end of the file; may be fewer than asked for.
    func read(
        _ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int
    /// As `read`, but only what is in the page cache; nil where that cannot be had without waiting.
    func readNow(_ descriptor: Descriptor, into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int?
    /// Whether `drops` can be believed of files in this directory: not every file system keeps its pages in the page cache
    /// alone. Makes a file there, and takes it away.
    func tellsReferences(in directory: String) -> Bool
    /// Whether files in this directory may have holes, and whether holes can be made in them. Makes a file there, and takes it
    /// away.
    func holes(in directory: String) throws(CacheError) -> HoleSupport
    /// Whether all bytes of `range` are in the page cache, so that to send them from there is not to wait; false also
    /// where the kernel does not tell.
    func isCached(_ descriptor: Descriptor, _ range: ByteRange) -> Bool
    /// Drops what the page cache has of `block`, as far as it is on the disk and nobody refers to it; answers whether none of
    /// `range` is left there.
    func drops(_ descriptor: Descriptor, _ range: ByteRange, of block: ByteRange) -> Bool
    /// Answers how many bytes were written; may be fewer than given.
    func write(
        _ descriptor: Descriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(CacheError) -> Int
    /// Gives the blocks of `range` back; its bytes read as zeros, the file's size stays.
    func punch(_ descriptor: Descriptor, _ range: ByteRange) throws(CacheError)
    /// Sets the file's size; what lies behind it is gone.
    func truncate(_ descriptor: Descriptor, to size: Int64) throws(CacheError)
    /// Returns when the file's bytes, and what is needed to read them, are on the device (`fdatasync`).
    func sync(_ descriptor: Descriptor) throws(CacheError)
    /// Size and space of an open file, also of one that has no name any more.
    func status(_ descriptor: Descriptor) throws(CacheError) -> FileStatus
    /// Nil where there is no such file.
    func status(of path: String) throws(CacheError) -> FileStatus?
    /// The names in a directory, in no order, without `.` and `..`.
    func list(_ directory: String) throws(CacheError) -> [String]
    /// Creates a directory with mode 0700; answers false where it was there already.
    func createDirectory(_ path: String) throws(CacheError) -> Bool
    /// Returns when the directory's entries are on the device.
    func syncDirectory(_ path: String) throws(CacheError)
    /// Gives a file another name at once, in place of what had it.
    func rename(_ path: String, to newPath: String) throws(CacheError)
    /// Does nothing where there is no such file.
    func unlink(_ path: String) throws(CacheError)
    /// Answers false where another process holds the lock; it ends with the descriptor.
    func lock(_ descriptor: Descriptor) throws(CacheError) -> Bool
    /// The bytes that may still be written to the file system of `path`.
    func freeBytes(at path: String) throws(CacheError) -> Int64
}

/// What a file system can do with holes.
package struct HoleSupport: Hashable, Sendable {
    /// What was never written takes no space.
    package var areSparse: Bool
    /// Space in the middle of a file can be given back.
    package var canBePunched: Bool

    package init(areSparse: Bool, canBePunched: Bool) {
        self.areSparse = areSparse
        self.canBePunched = canBePunched
    }
}

/// An open file's number in this process.
package struct Descriptor: Hashable, Sendable {
    package let number: Int32

    package init(number: Int32) { self.number = number }
}

/// What a file is opened for.
package enum FileAccess: Sendable {
    case readOnly
    case readWrite
    /// For reading and writing; it must not exist yet. Mode 0600.
    case create
    /// For reading and writing; it may exist. Mode 0600 where it is created.
    case openOrCreate
}

/// How large a file is, and what it costs.
package struct FileStatus: Hashable, Sendable {
    /// The offset behind the last byte.
    package var size: Int64
    /// What the file takes on the device.
    package var diskBytes: Int64
    /// A file with bytes of its own: no directory, pipe or device.
    package var isRegular: Bool

    package init(size: Int64, diskBytes: Int64, isRegular: Bool = true) {
        self.size = size
        self.diskBytes = diskBytes
        self.isRegular = isRegular
    }
}
