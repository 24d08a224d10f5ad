import CacheCore
import GRDB

extension Catalog {
    /// Takes a row out that is not what was written, whatever it says; answers whether it was there still. Its file is
    /// removed by the next start.
    @discardableResult
    func discardDamagedRow(of asset: AssetID) async throws(CacheError) -> Bool {
        try await write { db in
            try db.execute(
                sql: "DELETE FROM assets WHERE id = ? AND NOT (\(SummedTable.assets.isRight))",
                arguments: [RowCoding.blob(asset)])
            return db.changesCount > 0
        }
    }

    /// Makes a row whose file is gone one of an asset without bytes; its settings stay. Answers whether it did.
    @discardableResult
    func emptyRow(of name: FileName, ifGone path: String, _ disk: any Disk) async throws(CacheError) -> Bool {
        try await write { db in
            guard try disk.status(of: path)?.isRegular != true else { return false }
            try ExtentTable.removeAll(of: name.serial, db)
            try db.execute(
                sql: "UPDATE assets SET file_serial = NULL WHERE file_serial = ?", arguments: [name.serial])
            return db.changesCount > 0
        }
    }

    /// Makes a row one of an asset without bytes, whatever its file holds; its settings stay.
    func emptyRow(of asset: AssetID) async throws(CacheError) {
        try await write { db in
            let serial = try Int64.fetchOne(
                db, sql: "SELECT file_serial FROM assets WHERE id = ?", arguments: [RowCoding.blob(asset)])
            guard let serial else { return }
            try ExtentTable.removeAll(of: serial, db)
            try db.execute(sql: "UPDATE assets SET file_serial = NULL WHERE file_serial = ?", arguments: [serial])
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
            let beyond = ByteRangeSet([size..<Int64.max])
            // Of a piece that is cut nobody knows whether what is left of it is right.
            let bad = try SumTable.release(beyond, of: name.serial, look: { _ in nil }, db)
            return try ExtentTable.remove(beyond.runs + bad, from: name.serial, db) > 0
        }
    }

    /// What a row claims of its file.
    struct Claim: Sendable {
        /// Of the last byte.
        var end: Int64
        var bytes: Int64
        var extents: Int64

        /// What the file takes at most where nothing but that is in it: each extent has blocks at its ends that are not full,
        /// and the file system keeps notes.
        var mostDiskBytes: Int64 { bytes + extents * (16 << 10) + (64 << 10) }
    }

    /// What is on disk of a file; nil where no row names it.
    func extents(of file: Int64) async throws(CacheError) -> ByteRangeSet? {
        try await read { db in
            let isNamed = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM assets WHERE file_serial = ?)", arguments: [file])
            return isNamed == true ? try ExtentTable.extents(of: file, db) : nil
        }
    }

    /// The files that rows name, in a shard, and what is claimed of each.
    func claims(inShard shard: Int) async throws(CacheError) -> [FileName: Claim] {
        let first = AssetID(high: UInt64(shard) << 56, low: 0)
        let last = AssetID(high: UInt64(shard) << 56 | (1 << 56 - 1), low: .max)
        return try await read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT id, generation, file_serial,
                        coalesce((SELECT "end" FROM extents WHERE file = file_serial ORDER BY start DESC LIMIT 1), 0),
                        cached_bytes, (SELECT count(*) FROM extents WHERE file = file_serial)
                    FROM assets WHERE id BETWEEN ? AND ? AND file_serial IS NOT NULL
                    """,
                arguments: [RowCoding.blob(first), RowCoding.blob(last)])
            var claims: [FileName: Claim] = [:]
            while let row = try rows.next() {
                let name = FileName(asset: try RowCoding.assetID(row[0]), generation: row[1], serial: row[2])
                claims[name] = Claim(end: row[3], bytes: row[4], extents: row[5])
            }
            return claims
        }
    }
}
