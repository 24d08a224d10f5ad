import CacheCore
import GRDB

/// Corrections of rows that do not match their file.
extension Catalog {
    /// Deletes an asset's row if its checksum does not match; returns whether it did. The next start removes the row's
    /// file.
    @discardableResult
    func discardDamagedRow(of asset: AssetID) async throws(CacheError) -> Bool {
        try await write { db in
            try db.execute(
                sql: "DELETE FROM assets WHERE id = ? AND NOT (\(ChecksummedTable.assets.isRight))",
                arguments: [RowCoding.blob(asset)])
            return db.changesCount > 0
        }
    }

    /// Removes file and extents from a row if its file is missing. The asset's settings are kept. Returns whether the
    /// row changed.
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

    /// Removes file and extents from a row, whatever its file contains. The asset's settings are kept.
    func emptyRow(of asset: AssetID) async throws(CacheError) {
        try await write { db in
            let serial = try Int64.fetchOne(
                db, sql: "SELECT file_serial FROM assets WHERE id = ?", arguments: [RowCoding.blob(asset)])
            guard let serial else { return }
            try ExtentTable.removeAll(of: serial, db)
            try db.execute(sql: "UPDATE assets SET file_serial = NULL WHERE file_serial = ?", arguments: [serial])
        }
    }

    /// Removes the extents beyond the end of the file; returns whether there were any.
    ///
    /// The size is measured inside the transaction. A concurrent commit that adds extents is therefore either complete
    /// before, so that the file has the bytes, or it follows completely.
    @discardableResult
    func cutRow(of name: FileName, toEndOf path: String, _ disk: any Disk) async throws(CacheError) -> Bool {
        try await write { db in
            guard let size = try disk.status(of: path)?.size else { return false }
            let beyond = ByteRangeSet([size..<Int64.max])
            // A checksum covers a whole piece. The rest of a truncated piece cannot be verified, so its extents are
            // removed too.
            let bad = try ChecksumTable.release(beyond, of: name.serial, look: { _ in nil }, db)
            return try ExtentTable.remove(beyond.runs + bad, from: name.serial, db) > 0
        }
    }

    /// The part of a file that its row lists as cached.
    struct Claim: Sendable {
        /// End offset of the last extent.
        var end: Int64
        /// Number of cached bytes.
        var bytes: Int64
        /// Number of extents.
        var extents: Int64

        /// Upper estimate of the file's disk usage: partial blocks at both ends of every extent, and the file system's
        /// metadata.
        var mostDiskBytes: Int64 { bytes + extents * (16 << 10) + (64 << 10) }
    }

    /// Returns the extents of a file; nil if no row references the file.
    func extents(of file: Int64) async throws(CacheError) -> ByteRangeSet? {
        try await read { db in
            let isNamed = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM assets WHERE file_serial = ?)", arguments: [file])
            return isNamed == true ? try ExtentTable.extents(of: file, db) : nil
        }
    }

    /// Returns the files that the rows of a shard reference, with the claim of each.
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
