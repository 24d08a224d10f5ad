import CacheCore
import Foundation
import GRDB

/// The checksums of files' bytes as rows. They follow the extents: what has one without the other is damaged.
enum SumTable {
    /// Sums of a file, and what is wrong with the rows they come from.
    struct Found {
        var sums = BlockSums()
        /// Rows that are not what was written: what they were about has no sum.
        var damagedRows = 0
    }

    /// The sums of pieces that share a row with `range`.
    static func sums(of file: Int64, around range: ByteRange, _ db: Database) throws -> Found {
        guard !range.isEmpty else { return Found() }
        let wanted = SumRow.rows(of: range)
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT row, sums FROM sums WHERE file = ? AND row BETWEEN ? AND ? ORDER BY row"),
            arguments: [file, wanted.lowerBound, wanted.upperBound])
        var found = Found()
        while let row = try rows.next() {
            guard let sums = SumRow.decode(row[1], file: file, row: row[0]) else {
                found.damagedRows += 1
                continue
            }
            for piece in sums.pieces { found.sums.insert(piece) }
        }
        return found
    }

    /// Bytes have been claimed; answers what is not what it was claimed to be.
    static func claim(
        _ ranges: [ByteRange], of file: Int64, written: BlockSums, look: BlockSums.Look, _ db: Database
    ) throws -> [ByteRange] {
        var bad: [ByteRange] = []
        for range in ranges where !range.isEmpty {
            for row in SumRow.rows(of: range) {
                let part = range.clamped(to: SumRow.bounds(of: row))
                bad += try change(file, around: part, db) { (sums) throws(CacheError) in
                    try sums.claim([part], written: written, look: look)
                }
            }
        }
        return bad
    }

    /// Bytes are claimed no more, and are still in the file; answers what else is not any more what it was claimed to be.
    static func release(
        _ ranges: ByteRangeSet, of file: Int64, look: BlockSums.Look, _ db: Database
    ) throws -> [ByteRange] {
        var bad: [ByteRange] = []
        for range in ranges.runs where !range.isEmpty {
            bad += try change(file, around: range, db) { (sums) throws(CacheError) in
                try sums.release(ByteRangeSet([range]), look: look)
            }
        }
        return bad
    }

    static func removeAll(of file: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM sums WHERE file = ?", arguments: [file])
        try db.execute(sql: "DELETE FROM unsummed WHERE file = ?", arguments: [file])
    }

    /// Whether the file's bytes were written before sums were made.
    static func isUnsummed(_ file: Int64, _ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM unsummed WHERE file = ?)"), arguments: [file])
            ?? false
    }

    /// How many rows have sums that no extent has, or are damaged; they are put right, or not.
    static func strays(of file: Int64, dropping: Bool, _ db: Database) throws -> Int {
        let extents = try ExtentTable.extents(of: file, db)
        let rows = try Row.fetchAll(db, sql: "SELECT row, sums FROM sums WHERE file = ?", arguments: [file])
        var count = 0
        for row in rows {
            let number: Int64 = row[0]
            let sums = SumRow.decode(row[1], file: file, row: number)
            let kept = sums.map { BlockSums($0.pieces.filter { extents.contains($0.range) }) }
            if let sums, kept == sums { continue }
            count += 1
            if dropping { try write(kept ?? BlockSums(), file, number, unless: nil, db) }
        }
        return count
    }

    /// Reads the rows about `range`, changes their sums, and writes those rows that are others than before.
    private static func change(
        _ file: Int64, around range: ByteRange, _ db: Database,
        _ body: (inout BlockSums) throws(CacheError) -> [ByteRange]
    ) throws -> [ByteRange] {
        let before = try sums(of: file, around: range, db)
        var after = before.sums
        let bad = try body(&after)
        guard after != before.sums || before.damagedRows > 0 else { return bad }
        let touched = Set((before.sums.pieces + after.pieces).map { $0.range.lowerBound / SumRow.span })
        for row in touched.sorted() {
            try write(after, file, row, unless: before.sums, db)
        }
        return bad
    }

    private static func write(
        _ sums: BlockSums, _ file: Int64, _ row: Int64, unless before: BlockSums?, _ db: Database
    ) throws {
        let bounds = SumRow.bounds(of: row)
        let pieces = sums.pieces(touching: bounds)
        guard before.map({ $0.pieces(touching: bounds) != pieces }) ?? true else { return }
        if pieces.isEmpty {
            try db.cachedStatement(sql: "DELETE FROM sums WHERE file = ? AND row = ?").execute(arguments: [file, row])
        } else {
            try db.cachedStatement(sql: "INSERT OR REPLACE INTO sums (file, row, sums) VALUES (?, ?, ?)")
                .execute(arguments: [file, row, SumRow.encode(sums, file: file, row: row)])
        }
    }
}
