import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The identity and modification time of a file, to notice a change without reading it.
///
/// It contains the path with all symbolic links resolved: Kubernetes replaces a mounted ConfigMap by one link to a new
/// directory, and the files there may have equal sizes and times.
struct FileStamp: Hashable, Sendable {
    private let resolvedPath: String
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    /// Nanoseconds since 1970.
    private let modifiedAt: Int64

    /// Nil: the file does not exist, or cannot be reached. Blocks its thread.
    init?(path: String) {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        var status = stat()
        guard stat(resolved, &status) == 0 else { return nil }
        resolvedPath = String(cString: resolved)
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
        size = Int64(status.st_size)
        modifiedAt = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
    }
}
