package import CacheCore
import Synchronization

/// Ordered log of all operations on the files below one directory: a store records through `RecordingDisk`, SQLite
/// through `RecordingVFS`.
///
/// Paths are relative to the directory. A sync is only recorded; the device syncs nothing.
package final class DiskLog: Sendable {
    package enum Operation: Sendable {
        case createDirectory(String)
        /// Creates a file. Later operations refer to it by number.
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
        /// The file numbers, keyed by current name.
        var names: [String: Int]
        var fileCount: Int
    }

    /// The absolute path of the directory.
    let root: String
    private let state: Mutex<State>

    /// - Parameter image: the existing contents of the directory.
    package init(root: String, image: DiskImage = DiskImage()) {
        self.root = root
        state = Mutex(State(names: image.names, fileCount: image.fileCount))
    }

    package var count: Int { state.withLock { $0.operations.count } }

    package var operations: [Operation] { state.withLock { $0.operations } }

    /// The path relative to the directory; nil if it lies outside.
    func name(_ path: String) -> String? {
        if path == root { return "" }
        return path.hasPrefix(root + "/") ? String(path.dropFirst(root.utf8.count + 1)) : nil
    }

    /// The number of the file at `path`. Records a creation if the name is new.
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

    /// The number of the file at `path`; nil if there is none.
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
