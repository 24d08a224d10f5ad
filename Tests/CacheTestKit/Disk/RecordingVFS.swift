import CRecordingVFS
import Synchronization

/// SQLite VFS that records operations on database files in the log of their directory.
package enum RecordingVFS {
    private static let logs = Mutex<[DiskLog]>([])

    /// SQLite's result code of the registration, performed once per process.
    private static let installation: Int32 = larder_vfs_install(
        { path in RecordingVFS.log(String(cString: path)) != nil },
        { call, path, offset, bytes, count in
            RecordingVFS.note(
                call, String(cString: path), Int(offset), UnsafeRawBufferPointer(start: bytes, count: Int(count)))
        })

    /// Runs `body`. Databases opened below the log's directory during that time are recorded in it.
    package static func recording<Value>(_ log: DiskLog, _ body: () async throws -> Value) async throws -> Value {
        precondition(installation == 0, "SQLite rejected the recording VFS.")
        logs.withLock { $0.append(log) }
        defer { logs.withLock { logs in logs.removeAll { $0 === log } } }
        return try await body()
    }

    private static func log(_ path: String) -> DiskLog? {
        logs.withLock { logs in logs.first { $0.name(path) != nil } }
    }

    private static func note(_ call: larder_vfs_call, _ path: String, _ offset: Int, _ bytes: UnsafeRawBufferPointer) {
        guard let log = log(path), let file = call == LARDER_VFS_CREATE ? log.opened(path) : log.file(path) else {
            return
        }
        switch call {
        case LARDER_VFS_WRITE: log.note(.write(file: file, offset: offset, bytes: Array(bytes)))
        case LARDER_VFS_TRUNCATE: log.note(.truncate(file: file, size: offset))
        case LARDER_VFS_SYNC: log.note(.sync(file: file))
        case LARDER_VFS_SYNC_DIRECTORY:
            log.syncedDirectory(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
        case LARDER_VFS_DELETE: log.unlinked(path)
        default: break
        }
    }
}
