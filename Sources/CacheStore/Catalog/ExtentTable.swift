import CacheCore
import GRDB

/// The table `extents`: sorted, disjoint and never adjacent ranges of each file. A sequential fill therefore stays one
/// row.
enum ExtentTable {
    /// Reads all extents of a file.
    static func extents(of file: Int64, _ db: Database) throws -> ByteRangeSet {
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT start, \"end\" FROM extents WHERE file = ? ORDER BY start"),
            arguments: [file])
        var extents = ByteRangeSet()
        while let row = try rows.next() { extents.insert(row[0]..<row[1]) }
        return extents
    }

    /// Adds ranges to a file that has a row in `assets`, and updates the row's `cached_bytes`.
    static func add(_ ranges: some Sequence<ByteRange>, to file: Int64, _ db: Database) throws {
        var added: Int64 = 0
        for range in ranges where !range.isEmpty {
            added += try revise(file, around: range, db) { $0.insert(range) }
        }
        try count(added, for: file, db)
    }

    /// Removes ranges with their nonces, and updates `cached_bytes`; returns the number of bytes that were present.
    @discardableResult
    static func remove(_ ranges: some Sequence<ByteRange>, from file: Int64, _ db: Database) throws -> Int64 {
        var removed: Int64 = 0
        for range in ranges where !range.isEmpty {
            removed += try revise(file, around: range, db) { $0.remove(range) }
        }
        try NonceTable.remove(ranges, from: file, db)
        try count(-removed, for: file, db)
        return removed
    }

    /// Removes all extents, checksums and keys of a file.
    static func removeAll(of file: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM extents WHERE file = ?", arguments: [file])
        try ChecksumTable.removeAll(of: file, db)
        try NonceTable.removeAll(of: file, db)
        try db.execute(sql: "UPDATE assets SET cached_bytes = 0 WHERE file_serial = ?", arguments: [file])
    }

    /// Reads the rows that overlap or touch `range`, applies `change` to them as a set, and writes the set back.
    /// Returns the result of `change`, the number of changed bytes.
    private static func revise(
        _ file: Int64, around range: ByteRange, _ db: Database, _ change: (inout ByteRangeSet) -> Int64
    ) throws -> Int64 {
        // The row that starts before `range` may overlap or touch it.
        let before = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT start, \"end\" FROM extents WHERE file = ? AND start < ? ORDER BY start DESC LIMIT 1"),
            arguments: [file, range.lowerBound])
        var lower = range.lowerBound
        if let before, before[1] >= range.lowerBound { lower = before[0] }
        // The upper bound is inclusive: a row that starts at the end of `range` touches it.
        let arguments: StatementArguments = [file, lower, range.upperBound]
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT start, \"end\" FROM extents WHERE file = ? AND start BETWEEN ? AND ? ORDER BY start"),
            arguments: arguments)
        var set = ByteRangeSet(rows.map { $0[0]..<$0[1] })
        let changed = change(&set)
        guard changed != 0 else { return 0 }
        try db.cachedStatement(sql: "DELETE FROM extents WHERE file = ? AND start BETWEEN ? AND ?")
            .execute(arguments: arguments)
        for run in set.runs {
            try db.cachedStatement(sql: "INSERT INTO extents (file, start, \"end\") VALUES (?, ?, ?)")
                .execute(arguments: [file, run.lowerBound, run.upperBound])
        }
        return changed
    }

    /// Adds `bytes`, positive or negative, to the row's `cached_bytes`.
    private static func count(_ bytes: Int64, for file: Int64, _ db: Database) throws {
        guard bytes != 0 else { return }
        try db.cachedStatement(sql: "UPDATE assets SET cached_bytes = cached_bytes + ? WHERE file_serial = ?")
            .execute(arguments: [bytes, file])
    }
}
