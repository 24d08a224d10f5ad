import CacheCore
import Synchronization

/// The files that are open now, so that one file has one `SparseFile`.
final class OpenFiles: Sendable {
    private struct Entry { weak var file: SparseFile? }

    private struct State {
        var entries: [Int64: Entry] = [:]
        /// Files whose names are just being taken away.
        var leaving: Set<Int64> = []
    }

    private let state = Mutex(State())

    func file(serial: Int64) -> SparseFile? {
        state.withLock { $0.entries[serial]?.file }
    }

    /// Answers the file that is open under that serial already, else `file`; and whether its name is being taken away.
    func add(_ file: SparseFile, serial: Int64) -> (file: SparseFile, isLeaving: Bool) {
        state.withLock { state in
            let isLeaving = state.leaving.contains(serial)
            if let open = state.entries[serial]?.file { return (open, isLeaving) }
            state.entries[serial] = Entry(file: file)
            return (file, isLeaving)
        }
    }

    /// The file's name is about to be taken away; answers the file where it is open.
    func leaves(serial: Int64) -> SparseFile? {
        state.withLock { state in
            state.leaving.insert(serial)
            return state.entries[serial]?.file
        }
    }

    /// The file's name is taken away, or has to stay.
    func left(serial: Int64) { state.withLock { _ = $0.leaving.remove(serial) } }

    /// Forgets a serial whose file is gone; one that has been opened again meanwhile stays.
    func removeClosed(serial: Int64) {
        // Let go outside the lock: who looks at a file may be the last to hold it, and comes here again.
        _ = state.withLock { state in
            let opened = state.entries[serial]?.file
            if opened == nil { state.entries[serial] = nil }
            return opened
        }
    }
}
