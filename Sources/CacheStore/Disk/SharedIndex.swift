import CLinux
import CacheCore
import Glibc

/// The index of the catalog's write-ahead log (`-shm`), which SQLite maps into memory.
///
/// SQLite allocates one block in each page of it. If blocks are smaller than pages (ext4 on small devices), a write to
/// another block of the page on a full disk ends the process with SIGBUS.
enum SharedIndex {
    /// Allocates all blocks of the index, which SQLite must have open in this process. Throws `storageFull` if the disk
    /// is full.
    ///
    /// It uses SQLite's own descriptor: closing another descriptor of the same file would release SQLite's POSIX locks.
    static func allocate(besides catalog: String) throws(CacheError) {
        let path = catalog + "-shm"
        var found = stat()
        guard stat(path, &found) == 0, let number = descriptor(of: found) else { return }
        guard larder_allocate(number, Int64(found.st_size)) != 0, errno == ENOSPC else { return }
        throw CacheError(errno: ENOSPC, doing: "Allocating a file", path: path)
    }

    /// Finds the open descriptor of a file by device and inode. Nil if /proc is missing or the file is not open.
    private static func descriptor(of file: stat) -> Int32? {
        let numbers = (try? SystemDisk().list("/proc/self/fd"))?.compactMap { Int32($0) }
        return numbers?.first { number in
            var found = stat()
            return fstat(number, &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino
        }
    }
}
