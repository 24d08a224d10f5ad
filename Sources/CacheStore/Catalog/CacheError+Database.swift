import CacheCore
import GRDB
import Glibc

extension CacheError {
    /// What a failure of the catalog means; a `CacheError` stays what it is.
    init(database error: any Error) {
        switch error {
        case let error as CacheError: self = error
        case is CancellationError: self.init(.cancelled, "The work on the catalog was cancelled.")
        case let error as DatabaseError: self.init(error)
        default: self.init(.internal, "The catalog failed.", cause: error)
        }
    }

    private init(_ error: DatabaseError) {
        switch error.resultCode {
        case .SQLITE_FULL:
            self.init(.storageFull, "No space is left for the catalog.", cause: error)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_IOERR:
            self.init(.storageCorrupt, "The catalog is damaged or its disk reports an error.", cause: error)
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(.overloaded, "The catalog is busy.", cause: error)
        case .SQLITE_CONSTRAINT:
            self.init(.conflict, "The catalog holds something of that name already.", cause: error)
        case .SQLITE_INTERRUPT, .SQLITE_ABORT:
            self.init(.cancelled, "The work on the catalog was cancelled.", cause: error)
        case .SQLITE_CANTOPEN where Self.lacksDescriptors:
            self.init(.overloaded, "The catalog cannot be opened: too many files are open.", cause: error)
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM:
            self.init(.internal, "The catalog cannot be opened for writing.", cause: error)
        default:
            self.init(.internal, "The catalog failed.", cause: error)
        }
    }

    /// Whether there are fewer descriptors than a connection takes. SQLite does not tell why a file could not be opened,
    /// and has given back those it got by the time this is asked.
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

    /// The database, its log, the log's index and the directory.
    private static let descriptorsOfConnection = 4
}
