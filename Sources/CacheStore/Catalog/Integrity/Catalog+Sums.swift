package import CacheCore
import Foundation
import GRDB

extension Catalog {
    /// The sums of a file's bytes around `range`; rows that are damaged are left out. Blocks.
    func sums(of file: Int64, around range: ByteRange) throws(CacheError) -> BlockSums {
        do {
            return try pool.read { db in try SumTable.sums(of: file, around: range, db).sums }
        } catch {
            throw failure(error)
        }
    }

    /// Whether the file's bytes were written before sums were made. Blocks.
    func isUnsummed(_ file: Int64) throws(CacheError) -> Bool {
        do {
            return try pool.read { db in try SumTable.isUnsummed(file, db) }
        } catch {
            throw failure(error)
        }
    }

    /// The next assets in the order of their names.
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

    /// Takes sums out that no extent has, and rows of sums that are not what was written; answers how many rows that were.
    package func dropStraySums(of file: Int64) async throws(CacheError) -> Int {
        try await write { db in try SumTable.strays(of: file, dropping: true, db) }
    }

    /// As `dropStraySums`, and perhaps only counted.
    func straySums(of file: Int64, dropping: Bool) async throws(CacheError) -> Int {
        guard !dropping else { return try await dropStraySums(of: file) }
        return try await read { db in try SumTable.strays(of: file, dropping: false, db) }
    }

    /// As `isUnsummed`.
    func isUnsummedLater(_ file: Int64) async throws(CacheError) -> Bool {
        try await read { db in try SumTable.isUnsummed(file, db) }
    }

    /// Whether a row's count of bytes is not that of its extents; corrected where it is to be.
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

    /// What SQLite finds wrong with the catalog's pages; a few sentences at most.
    func faults() async throws(CacheError) -> [String] {
        try await read { db in
            try String.fetchAll(db, sql: "PRAGMA integrity_check(10)").filter { $0 != "ok" }
        }
    }

    /// All bytes of the file have been looked at in this run.
    package func checked(_ file: FileName) async throws(CacheError) {
        let run = run
        try await write { db in
            try db.execute(
                sql: "UPDATE assets SET checked_run = ? WHERE file_serial = ?", arguments: [run, file.serial])
        }
    }
}
