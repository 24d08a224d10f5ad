import CacheCore
import Synchronization

/// The files that are open now, so that one file has one `SparseFile`.
final class OpenFiles: Sendable {
    private struct Entry { weak var file: SparseFile? }

    private let entries = Mutex<[Int64: Entry]>([:])

    func file(serial: Int64) -> SparseFile? {
        entries.withLock { $0[serial]?.file }
    }

    /// Answers the file that is open under that serial already, else `file`.
    func add(_ file: SparseFile, serial: Int64) -> SparseFile {
        entries.withLock { entries in
            if let open = entries[serial]?.file { return open }
            entries[serial] = Entry(file: file)
            return file
        }
    }

    /// Forgets a serial whose file is gone; one that has been opened again meanwhile stays.
    func removeClosed(serial: Int64) {
        entries.withLock { entries in
            if let entry = entries[serial], entry.file == nil { entries[serial] = nil }
        }
    }
}
