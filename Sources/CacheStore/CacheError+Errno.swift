package import CacheCore
import Glibc

/// A system call that failed, kept as a `CacheError`'s cause.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    package let number: Int32

    package init(number: Int32) { self.number = number }

    package var description: String {
        let text = strerror(number).map { String(cString: $0) } ?? "unknown"
        return "errno \(number), \(text)"
    }
}

extension CacheError {
    /// What a failed system call means: `storageFull` where space or quota is used up or a size limit is met,
    /// `storageCorrupt` where the device or the file system is broken, `overloaded` where descriptors have run out,
    /// else `internal`.
    ///
    /// - Parameter doing: the beginning of the sentence, such as "Writing".
    package init(errno number: Int32, doing: String, path: String) {
        let cause = SystemCallError(number: number)
        switch number {
        case ENOSPC, EDQUOT, EFBIG:
            self.init(.storageFull, "\(doing) \(path) failed: no space is left for it.", cause: cause)
        case EIO, EUCLEAN, EBADMSG, ENXIO, ENODEV:
            self.init(.storageCorrupt, "\(doing) \(path) failed: the disk reports an error.", cause: cause)
        case EMFILE, ENFILE:
            self.init(.overloaded, "\(doing) \(path) failed: too many files are open.", cause: cause)
        case EACCES, EPERM, EROFS:
            self.init(.internal, "\(doing) \(path) failed: permission is missing.", cause: cause)
        default:
            self.init(.internal, "\(doing) \(path) failed: \(cause).", cause: cause)
        }
    }
}
