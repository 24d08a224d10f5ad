import Foundation

/// New, empty directory. It is deleted with its contents when the last reference is released.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// - Parameter isInMemory: use the system's in-memory file system if it has one.
    package init(isInMemory: Bool = false) throws {
        let memory = "/dev/shm"
        let hasMemory = isInMemory && FileManager.default.isWritableFile(atPath: memory)
        let parent = hasMemory ? memory : FileManager.default.temporaryDirectory.path
        let template = parent + "/larder-test-XXXXXX"
        var bytes = Array(template.utf8CString)
        guard mkdtemp(&bytes) != nil else { throw CocoaError(.fileWriteUnknown) }
        path = String(decoding: bytes.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        // Best effort: the system cleans up leftover temporary files.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The absolute path of an entry of the directory.
    package func path(_ name: String) -> String { path + "/" + name }
}
