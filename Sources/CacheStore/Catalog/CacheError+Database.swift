import CacheCore
import GRDB
import Glibc

extension CacheError {
    /// Maps an SQLite or GRDB error to a `CacheError`. A `CacheError` is kept unchanged.
    init(database error: any Error) {
        switch error {
        case let error as CacheError: self = error
        case is CancellationError: self.init(.cancelled, "The catalog operation was cancelled.")
        case let error as DatabaseError: self.init(error)
        default: self.init(.internal, "The catalog operation failed.", cause: error)
        }
    }

    /// Maps an SQLite result code to an error code. The message never contains SQL or a path, because clients receive
    /// it.
    private init(_ error: DatabaseError) {
        switch error.resultCode {
        case .SQLITE_FULL:
            self.init(.storageFull, "No space is left for the catalog.", cause: error)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_IOERR:
            self.init(.storageCorrupt, "The catalog is damaged or its disk reports an error.", cause: error)
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(.overloaded, "The catalog is busy; retry later.", cause: error)
        case .SQLITE_CONSTRAINT:
            self.init(.conflict, "The catalog already contains an entry with this name.", cause: error)
        case .SQLITE_INTERRUPT, .SQLITE_ABORT:
            self.init(.cancelled, "The catalog operation was cancelled.", cause: error)
        case .SQLITE_CANTOPEN where Self.lacksDescriptors:
            self.init(.overloaded, "The catalog cannot be opened: too many files are open.", cause: error)
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM:
            self.init(.internal, "The catalog cannot be opened for writing; check its permissions.", cause: error)
        default:
            self.init(.internal, "The catalog operation failed.", cause: error)
        }
    }

    /// Whether the process has fewer free file descriptors than a database connection needs.
    ///
    /// SQLite does not report why a file could not be opened, and it has closed its descriptors by the time of this
    /// check. The check therefore opens the same number of descriptors itself.
    private static var lacksDescriptors: Bool {
        var descriptors: [Int32] = []
        defer { for descriptor in descriptors { _ = close(descriptor) } }
        for _ in 0..<descriptorsOfConnection {
            let descriptor = open("/", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return errno == EMFILE || errno == ENFILE }
            descriptors.append(descriptor)
        }
        return false
    }

    /// The database, its write-ahead log, the log's index and the directory.
    private static let descriptorsOfConnection = 4
}
