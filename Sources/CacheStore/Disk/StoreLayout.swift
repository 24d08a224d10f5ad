import CacheCore

/// Paths of the files in a store's directory.
package struct StoreLayout: Hashable, Sendable {
    /// The data directory, without trailing slashes.
    package let directory: String

    package init(directory: String) {
        var path = Substring(directory)
        while path.count > 1, path.last == "/" { path = path.dropLast() }
        self.directory = String(path)
    }

    /// Path of the parent directory.
    var parent: String {
        guard let slash = directory.lastIndex(of: "/") else { return "." }
        return slash == directory.startIndex ? "/" : String(directory[..<slash])
    }

    /// The file that the process using the store locks.
    package var lock: String { directory + "/larder.lock" }
    /// The file that processes lock which have released the store and still read its files.
    package var readersLock: String { directory + "/readers.lock" }
    /// The SQLite database; its log and the log's index lie beside it (`-wal`, `-shm`).
    package var catalog: String { directory + "/catalog.sqlite" }
    /// The key of `SecretBox`.
    var secretKey: String { directory + "/secret.key" }
    /// Draft of the secret key, until it is complete and renamed.
    var secretKeyDraft: String { secretKey + ".new" }
    /// The file of `EmergencyReserve`.
    package var reserve: String { directory + "/reserve" }
    /// The directory of the shards.
    package var assets: String { directory + "/assets" }

    /// The directory of the spool files of large jobs.
    package var spool: String { directory + "/spool" }

    /// Names of the 256 shard directories: two hexadecimal digits each.
    package static let shards: [String] = (UInt8.min...UInt8.max).map(\.hexDigits)

    /// Path of a shard directory.
    package func shard(_ name: String) -> String { assets + "/" + name }

    /// Path of an asset's file.
    package func path(of file: FileName) -> String { shard(file.shard) + "/" + file.description }
}
