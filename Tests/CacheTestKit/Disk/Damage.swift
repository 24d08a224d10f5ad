package import CacheCore
import CacheStore
import Foundation
import GRDB

/// Flips one bit of a file without an update of its checksums.
package func damage(_ path: String, at offset: Int64) throws(CacheError) {
    let disk = SystemDisk()
    let descriptor = try disk.open(path, .readWrite)
    defer { disk.close(descriptor) }
    var byte: UInt8 = 0
    let outcome: CacheError? = withUnsafeMutableBytes(of: &byte) { buffer in
        do throws(CacheError) {
            _ = try disk.read(descriptor, into: buffer, at: offset)
            buffer[0] ^= 4
            _ = try disk.write(descriptor, UnsafeRawBufferPointer(buffer), at: offset)
            return nil
        } catch {
            return error
        }
    }
    if let outcome { throw outcome }
}

extension TemporaryDirectory {
    /// Overwrites the root page of a catalog table. The store must be closed.
    package func damageCatalog(table: String) throws {
        let path = StoreLayout(directory: path).catalog
        let (page, size) = try DatabaseQueue(path: path).writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
            let page = try Int.fetchOne(
                db, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [table])
            return (page, try Int.fetchOne(db, sql: "PRAGMA page_size"))
        }
        guard let page, let size else { throw CacheError(.notFound, "There is no table \(table).") }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64((page - 1) * size))
        try file.write(contentsOf: Data(repeating: 0xA5, count: size))
        try file.close()
    }

    /// The paths of all asset files in the store at `store`, relative to this directory.
    package func assetFiles(_ store: String = "") throws(CacheError) -> [String] {
        let layout = StoreLayout(directory: store.isEmpty ? path : path(store))
        var files: [String] = []
        for shard in StoreLayout.shards {
            for name in try SystemDisk().list(layout.shard(shard)) { files.append(layout.shard(shard) + "/" + name) }
        }
        return files
    }
}
