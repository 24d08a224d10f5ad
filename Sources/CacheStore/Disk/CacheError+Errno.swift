package import CacheCore
import Glibc

/// A failed system call, as the cause of a `CacheError`.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The errno value.
    package let number: Int32
    /// Path of the file or directory; for logs only, never for clients. Nil if there is none.
    package var path: String?

    package var description: String {
        let text = strerror(number).map { String(cString: $0) } ?? "unknown"
        return "errno \(number), \(text)" + (path.map { ": " + $0 } ?? "")
    }
}

extension CacheError {
    /// Whether the file system does not support the failed call.
    var isUnsupported: Bool {
        switch (cause as? SystemCallError)?.number {
        case EOPNOTSUPP, ENOSYS, ENODEV: true
        default: false
        }
    }

    /// Whether the failure concerns one file only: the device cannot read it, or its permissions were changed.
    package var isOfOneFile: Bool {
        [EIO, EUCLEAN, EBADMSG, EACCES, EPERM].contains((cause as? SystemCallError)?.number)
    }

    /// Whether a file reached a size limit. That does not mean that the disk is full.
    var isOfSize: Bool { (cause as? SystemCallError)?.number == EFBIG }

    /// Whether the path leads to no regular file.
    var isOfNoFile: Bool { [ENOENT, EISDIR, ELOOP, ENOTDIR].contains((cause as? SystemCallError)?.number) }

    /// Maps the errno of a failed system call. `storageFull`: disk, quota or size limit exhausted. `storageCorrupt`:
    /// the device or the file system failed. `overloaded`: no free file descriptor. `internal`: anything else. The path
    /// is kept in the cause only, because clients receive the message.
    ///
    /// - Parameter doing: the beginning of the message, such as "Writing a file".
    package init(errno number: Int32, doing: String, path: String) {
        let cause = SystemCallError(number: number, path: path)
        switch number {
        case ENOSPC, EDQUOT, EFBIG:
            self.init(.storageFull, "\(doing) failed: the disk is full, or a quota or limit is reached.", cause: cause)
        case EIO, EUCLEAN, EBADMSG, ENXIO, ENODEV:
            self.init(.storageCorrupt, "\(doing) failed: the disk reports an error.", cause: cause)
        case EMFILE, ENFILE:
            self.init(.overloaded, "\(doing) failed: too many files are open.", cause: cause)
        case EROFS:
            self.init(.internal, "\(doing) failed: the file system is read-only.", cause: cause)
        case EACCES, EPERM:
            self.init(.internal, "\(doing) failed: permission denied.", cause: cause)
        default:
            self.init(.internal, "\(doing) failed: \(SystemCallError(number: number)).", cause: cause)
        }
    }
}
