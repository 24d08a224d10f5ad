import CLinux
import CacheCore
import Glibc

/// The index of the catalog's write-ahead log, `-shm`, which SQLite maps into memory.
///
/// SQLite makes sure of one block in each page of it. Where blocks are smaller than pages (ext4 on small devices) a write to
/// another block on a full disk would end the process with SIGBUS.
enum SharedIndex {
    /// Makes all blocks of it, which somebody in this process has open. Throws `storageFull` where there is no room.
    ///
    /// Through SQLite's own descriptor: whoever closes another one of the same file takes SQLite's locks away.
    static func allocate(besides catalog: String) throws(CacheError) {
        let path = catalog + "-shm"
        var found = stat()
        guard stat(path, &found) == 0, let number = descriptor(of: found) else { return }
        guard larder_allocate(number, Int64(found.st_size)) != 0, errno == ENOSPC else { return }
        throw CacheError(errno: ENOSPC, doing: "Allocating a file", path: path)
    }

    /// Nil where there is no /proc, or the file is not open.
    private static func descriptor(of file: stat) -> Int32? {
        let numbers = (try? SystemDisk().list("/proc/self/fd"))?.compactMap { Int32($0) }
        return numbers?.first { number in
            var found = stat()
            return fstat(number, &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino
        }
    }
}
