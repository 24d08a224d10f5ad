import Foundation

/// A new, empty directory that goes, with what is in it, when the last reference does.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// - Parameter isInMemory: where the system has a file system in memory, it lies there.
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
        // What cannot be removed is the system's to clean up.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of something inside.
    package func path(_ name: String) -> String { path + "/" + name }
}
