import CacheCore
import GRDB

extension Catalog {
    /// Makes a row whose file is gone one of an asset without bytes; its settings stay. Answers whether it did.
    @discardableResult
    func emptyRow(of name: FileName, ifGone path: String, _ disk: any Disk) async throws(CacheError) -> Bool {
        try await write { db in
            guard try disk.status(of: path) == nil else { return false }
            try ExtentTable.removeAll(of: name.serial, db)
            try db.execute(
                sql: "UPDATE assets SET file_serial = NULL WHERE file_serial = ?", arguments: [name.serial])
            return db.changesCount > 0
        }
    }

    /// Takes out of a row what lies beyond its file's end; answers whether there was anything.
    ///
    /// The size is measured inside the transaction: a commit that claims more bytes comes wholly before, and then the
    /// file has them, or wholly after.
    @discardableResult
    func cutRow(of name: FileName, toEndOf path: String, _ disk: any Disk) async throws(CacheError) -> Bool {
        try await write { db in
            guard let size = try disk.status(of: path)?.size else { return false }
            return try ExtentTable.remove([size..<Int64.max], from: name.serial, db) > 0
        }
    }

    /// The files that rows name, in a shard, and the end of the last byte claimed of each.
    func claims(inShard shard: Int) async throws(CacheError) -> [FileName: Int64] {
        let first = AssetID(high: UInt64(shard) << 56, low: 0)
        let last = AssetID(high: UInt64(shard) << 56 | (1 << 56 - 1), low: .max)
        return try await read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT id, generation, file_serial,
                        coalesce((SELECT "end" FROM extents WHERE file = file_serial ORDER BY start DESC LIMIT 1), 0)
                    FROM assets WHERE id BETWEEN ? AND ? AND file_serial IS NOT NULL
                    """,
                arguments: [RowCoding.blob(first), RowCoding.blob(last)])
            var claims: [FileName: Int64] = [:]
            while let row = try rows.next() {
                let name = FileName(asset: try RowCoding.assetID(row[0]), generation: row[1], serial: row[2])
                claims[name] = row[3]
            }
            return claims
        }
    }
}
