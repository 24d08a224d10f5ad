import CacheCore

/// Registry of open files: one `SparseFile` object per file.
final class OpenFiles: Sendable {
    /// Weak: the registry keeps no file open.
    private struct Entry { weak var file: SparseFile? }

    /// Guarded by `state`.
    private struct State {
        /// Open files by serial.
        var entries: [Int64: Entry] = [:]
        /// Serials of files during the removal of their names.
        var leaving: Set<Int64> = []
    }

    private let state = OrderedMutex(.leaf, State())

    /// The open file with this serial; nil if it is not open.
    func file(serial: Int64) -> SparseFile? {
        state.withLock { $0.entries[serial]?.file }
    }

    /// The open files of an asset, those of earlier generations included.
    func files(of asset: AssetID) -> [SparseFile] {
        // The references to other files are released outside the lock: one may be the last, and the file's deinit takes
        // the lock again.
        state.withLock { $0.entries.values.compactMap(\.file) }.filter { $0.name?.asset == asset }
    }

    /// Registers `file`, unless an object with this serial is open: then returns that one. `isLeaving`: the file's name
    /// is being removed.
    func add(_ file: SparseFile, serial: Int64) -> (file: SparseFile, isLeaving: Bool) {
        state.withLock { state in
            let isLeaving = state.leaving.contains(serial)
            if let open = state.entries[serial]?.file { return (open, isLeaving) }
            state.entries[serial] = Entry(file: file)
            return (file, isLeaving)
        }
    }

    /// Records that the file's name is about to be removed; returns the file if it is open.
    func leaves(serial: Int64) -> SparseFile? {
        state.withLock { state in
            state.leaving.insert(serial)
            return state.entries[serial]?.file
        }
    }

    /// The file's name was removed, or the removal failed.
    func left(serial: Int64) { state.withLock { _ = $0.leaving.remove(serial) } }

    /// Removes the entry of a closed file, unless the file was opened again meanwhile.
    func removeClosed(serial: Int64) {
        // The reference is released outside the lock: it may be the last one, and the file's deinit calls this method
        // again.
        _ = state.withLock { state in
            let opened = state.entries[serial]?.file
            if opened == nil { state.entries[serial] = nil }
            return opened
        }
    }
}
