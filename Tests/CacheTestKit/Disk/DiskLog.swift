package import CacheCore
import Synchronization

/// What was done to the files below a directory, in one order, whoever did it: a store through `RecordingDisk`, SQLite
/// through `RecordingVFS`. Paths are relative to the directory; what is synced is so in the log alone.
package final class DiskLog: Sendable {
    package enum Operation: Sendable {
        case createDirectory(String)
        /// A name for a new file, which goes by its number from then on.
        case create(String, file: Int)
        case write(file: Int, offset: Int, bytes: [UInt8])
        case truncate(file: Int, size: Int)
        case punch(file: Int, range: ByteRange)
        case sync(file: Int)
        case rename(String, to: String)
        case unlink(String)
        case syncDirectory(String)
    }

    private struct State {
        var operations: [Operation] = []
        /// The files by their names as they are now.
        var names: [String: Int]
        var fileCount: Int
    }

    /// Absolute.
    let root: String
    private let state: Mutex<State>

    /// - Parameter image: what the directory holds already.
    package init(root: String, image: DiskImage = DiskImage()) {
        self.root = root
        state = Mutex(State(names: image.names, fileCount: image.fileCount))
    }

    package var count: Int { state.withLock { $0.operations.count } }

    package var operations: [Operation] { state.withLock { $0.operations } }

    /// The path as the log has it; nil where it does not lie below the directory.
    func name(_ path: String) -> String? {
        if path == root { return "" }
        return path.hasPrefix(root + "/") ? String(path.dropFirst(root.utf8.count + 1)) : nil
    }

    /// The file of that name; one that has none yet has been created.
    func opened(_ path: String) -> Int? {
        guard let name = self.name(path) else { return nil }
        return state.withLock { state in
            if let file = state.names[name] { return file }
            let file = state.fileCount
            state.fileCount += 1
            state.names[name] = file
            state.operations.append(.create(name, file: file))
            return file
        }
    }

    /// The file of that name, where it is there.
    func file(_ path: String) -> Int? {
        guard let name = self.name(path) else { return nil }
        return state.withLock { $0.names[name] }
    }

    func note(_ operation: Operation) { state.withLock { $0.operations.append(operation) } }

    func createdDirectory(_ path: String) {
        if let name = self.name(path) { note(.createDirectory(name)) }
    }

    func syncedDirectory(_ path: String) {
        if let name = self.name(path) { note(.syncDirectory(name)) }
    }

    func renamed(_ path: String, to newPath: String) {
        guard let name = self.name(path), let newName = self.name(newPath) else { return }
        state.withLock { state in
            state.names[newName] = state.names.removeValue(forKey: name)
            state.operations.append(.rename(name, to: newName))
        }
    }

    func unlinked(_ path: String) {
        guard let name = self.name(path) else { return }
        state.withLock { state in
            if state.names.removeValue(forKey: name) != nil { state.operations.append(.unlink(name)) }
        }
    }
}
