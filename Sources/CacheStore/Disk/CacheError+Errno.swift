package import CacheCore
import Glibc

/// A system call that failed, kept as a `CacheError`'s cause.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    package let number: Int32
    /// Of what it failed; for those who run the service, not for its clients.
    package let path: String?

    package init(number: Int32, path: String? = nil) {
        self.number = number
        self.path = path
    }

    package var description: String {
        let text = strerror(number).map { String(cString: $0) } ?? "unknown"
        return "errno \(number), \(text)" + (path.map { ": " + $0 } ?? "")
    }
}

extension CacheError {
    /// Whether the file system does not know the call that failed.
    var isUnsupported: Bool {
        switch (cause as? SystemCallError)?.number {
        case EOPNOTSUPP, ENOSYS, ENODEV: true
        default: false
        }
    }

    /// Whether it is a file's own that it cannot be opened: the device does not give it, or somebody has taken it.
    package var isOfOneFile: Bool {
        [EIO, EUCLEAN, EBADMSG, EACCES, EPERM].contains((cause as? SystemCallError)?.number)
    }

    /// Whether a file has met a size limit, which says nothing of the room for others.
    var isOfSize: Bool { (cause as? SystemCallError)?.number == EFBIG }

    /// Whether there is no file of bytes under the name.
    var isOfNoFile: Bool { [ENOENT, EISDIR, ELOOP, ENOTDIR].contains((cause as? SystemCallError)?.number) }

    /// What a failed system call means: `storageFull` where space or quota is used up or a size limit is met,
    /// `storageCorrupt` where the device or the file system is broken, `overloaded` where descriptors have run out,
    /// else `internal`. The path is in the cause only: clients are told the message.
    ///
    /// - Parameter doing: the beginning of the sentence, such as "Writing a file".
    package init(errno number: Int32, doing: String, path: String) {
        let cause = SystemCallError(number: number, path: path)
        switch number {
        case ENOSPC, EDQUOT, EFBIG:
            self.init(.storageFull, "\(doing) failed: no space is left for it.", cause: cause)
        case EIO, EUCLEAN, EBADMSG, ENXIO, ENODEV:
            self.init(.storageCorrupt, "\(doing) failed: the disk reports an error.", cause: cause)
        case EMFILE, ENFILE:
            self.init(.overloaded, "\(doing) failed: too many files are open.", cause: cause)
        case EROFS:
            self.init(.internal, "\(doing) failed: the file system is read-only.", cause: cause)
        case EACCES, EPERM:
            self.init(.internal, "\(doing) failed: permission is missing.", cause: cause)
        default:
            self.init(.internal, "\(doing) failed: \(SystemCallError(number: number)).", cause: cause)
        }
    }
}
