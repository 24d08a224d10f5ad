import Foundation

/// New, empty directory. It is deleted with its contents when the last reference is released.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// The in-memory file system if it has enough free space: waits for a disk are more than half of the time of the tests.
    /// The programs in other languages test the service on disks. `TMPDIR` precedes.
    private static let memory: String? = {
        let path = "/dev/shm"
        guard ProcessInfo.processInfo.environment["TMPDIR"] == nil,
            FileManager.default.isWritableFile(atPath: path),
            let values = try? FileManager.default.attributesOfFileSystem(forPath: path),
            let free = values[.systemFreeSize] as? Int64, free >= 4 << 30
        else { return nil }
        return path
    }()

    /// - Parameter isOnDisk: for tests of features without support in memory, such as reads that do not wait (`RWF_NOWAIT`).
    package init(isOnDisk: Bool = false) throws {
        let parent = (isOnDisk ? nil : Self.memory) ?? FileManager.default.temporaryDirectory.path
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
