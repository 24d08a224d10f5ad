package import CacheCore
import Foundation
import GRDB

/// Access to checksums, and checks for the verification of a store.
extension Catalog {
    /// Returns the checksums of a file around `range`, without damaged rows. Blocks.
    func sums(of file: Int64, around range: ByteRange) throws(CacheError) -> BlockChecksums {
        do {
            return try pool.read { db in try ChecksumTable.sums(of: file, around: range, db).sums }
        } catch {
            throw failure(error)
        }
    }

    /// Whether the file was written before checksums existed. Blocks.
    func isUnsummed(_ file: Int64) throws(CacheError) -> Bool {
        do {
            return try pool.read { db in try ChecksumTable.isUnsummed(file, db) }
        } catch {
            throw failure(error)
        }
    }

    /// Returns the next assets in the order of their identifiers; nil starts at the first.
    package func assetIDs(after id: AssetID?, limit: Int) async throws(CacheError) -> [AssetID] {
        try await read { db in
            let rows = try Row.fetchCursor(
                db, sql: "SELECT id FROM assets WHERE id > ? ORDER BY id LIMIT ?",
                arguments: [id.map(RowCoding.blob) ?? Data(), limit])
            var ids: [AssetID] = []
            while let row = try rows.next() { ids.append(try RowCoding.assetID(row[0])) }
            return ids
        }
    }

    /// Deletes checksums without an extent and damaged checksum rows; returns the number of affected rows.
    package func dropStraySums(of file: Int64) async throws(CacheError) -> Int {
        try await write { db in try ChecksumTable.strays(of: file, dropping: true, db) }
    }

    /// Counts the same rows; deletes them only if `dropping`.
    func straySums(of file: Int64, dropping: Bool) async throws(CacheError) -> Int {
        guard !dropping else { return try await dropStraySums(of: file) }
        return try await read { db in try ChecksumTable.strays(of: file, dropping: false, db) }
    }

    /// As `isUnsummed`, without blocking.
    func isUnsummedLater(_ file: Int64) async throws(CacheError) -> Bool {
        try await read { db in try ChecksumTable.isUnsummed(file, db) }
    }

    /// Whether `cached_bytes` differs from the sum of the extents; corrects it if `correcting`.
    func countIsWrong(of file: Int64, correcting: Bool) async throws(CacheError) -> Bool {
        let sql = "coalesce((SELECT sum(\"end\" - start) FROM extents WHERE file = file_serial), 0)"
        let isWrong = try await read { db in
            try Bool.fetchOne(
                db, sql: "SELECT cached_bytes <> \(sql) FROM assets WHERE file_serial = ?", arguments: [file]) ?? false
        }
        guard isWrong, correcting else { return isWrong }
        try await write { db in
            try db.execute(sql: "UPDATE assets SET cached_bytes = \(sql) WHERE file_serial = ?", arguments: [file])
        }
        return true
    }

    /// Returns up to ten messages of SQLite's integrity check; empty if it finds no error.
    func faults() async throws(CacheError) -> [String] {
        try await read { db in
            try String.fetchAll(db, sql: "PRAGMA integrity_check(10)").filter { $0 != "ok" }
        }
    }

    /// Records that this run verified all cached bytes of the file.
    package func checked(_ file: FileName) async throws(CacheError) {
        let run = run
        try await write { db in
            try db.execute(
                sql: "UPDATE assets SET checked_run = ? WHERE file_serial = ?", arguments: [run, file.serial])
        }
    }
}
