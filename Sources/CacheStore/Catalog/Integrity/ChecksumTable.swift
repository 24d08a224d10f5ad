import CacheCore
import Foundation
import GRDB

/// The table `sums`: checksums of file bytes. It must match the table `extents`: a checksum without an extent, or an
/// extent without a checksum, is damage (except in files of `unsummed`).
enum ChecksumTable {
    /// Checksums of a file, and the number of damaged rows among those read.
    struct Found {
        var sums = BlockChecksums()
        /// Rows that do not match their own checksum. The bytes that they cover have no checksum here.
        var damagedRows = 0
    }

    /// Reads the rows that cover `range`. The result also contains the other pieces of these rows.
    static func sums(of file: Int64, around range: ByteRange, _ db: Database) throws -> Found {
        guard !range.isEmpty else { return Found() }
        let wanted = ChecksumRow.rows(of: range)
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT row, sums FROM sums WHERE file = ? AND row BETWEEN ? AND ? ORDER BY row"),
            arguments: [file, wanted.lowerBound, wanted.upperBound])
        var found = Found()
        while let row = try rows.next() {
            guard let sums = ChecksumRow.decode(row[1], file: file, row: row[0]) else {
                found.damagedRows += 1
                continue
            }
            for piece in sums.pieces { found.sums.insert(piece) }
        }
        return found
    }

    /// Reads at most `limit` checksums of runs inside `extents`, from `offset` on, without damaged rows.
    static func sums(
        of file: Int64, from offset: Int64, in extents: ByteRangeSet, limit: Int, _ db: Database
    ) throws -> [BlockChecksums.Piece] {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT row, sums FROM sums WHERE file = ? AND row >= ? ORDER BY row",
            arguments: [file, offset / ChecksumRow.span])
        var found: [BlockChecksums.Piece] = []
        while found.count < limit, let row = try rows.next() {
            let pieces = ChecksumRow.decode(row[1], file: file, row: row[0])?.pieces ?? []
            found += pieces.filter { $0.range.lowerBound >= offset && extents.contains($0.range) }
        }
        return Array(found.prefix(limit))
    }

    /// Records checksums for new extents. `written` are the checksums computed during the write; `look` computes the
    /// others from the file. Returns the ranges that do not match an earlier checksum or cannot be read.
    static func claim(
        _ ranges: [ByteRange], of file: Int64, written: BlockChecksums, look: BlockChecksums.Look, _ db: Database
    ) throws -> [ByteRange] {
        var bad: [ByteRange] = []
        for range in ranges where !range.isEmpty {
            for row in ChecksumRow.rows(of: range) {
                let part = range.clamped(to: ChecksumRow.bounds(of: row))
                bad += try change(file, around: part, db) { (sums) throws(CacheError) in
                    try sums.claim([part], written: written, look: look)
                }
            }
        }
        return bad
    }

    /// Removes the checksums of ranges that lose their extents. Their bytes must still be in the file: the rest of a
    /// split piece is read and gets a new checksum. Returns the ranges of such rests that fail verification.
    static func release(
        _ ranges: ByteRangeSet, of file: Int64, look: BlockChecksums.Look, _ db: Database
    ) throws -> [ByteRange] {
        var bad: [ByteRange] = []
        for range in ranges.runs where !range.isEmpty {
            bad += try change(file, around: range, db) { (sums) throws(CacheError) in
                try sums.release(ByteRangeSet([range]), look: look)
            }
        }
        return bad
    }

    /// Removes all checksums of a file.
    static func removeAll(of file: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM sums WHERE file = ?", arguments: [file])
        try db.execute(sql: "DELETE FROM unsummed WHERE file = ?", arguments: [file])
    }

    /// Whether the file was written before checksums existed.
    static func isUnsummed(_ file: Int64, _ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM unsummed WHERE file = ?)"), arguments: [file])
            ?? false
    }

    /// Counts the rows that are damaged or have checksums without an extent; corrects them if `dropping`.
    static func strays(of file: Int64, dropping: Bool, _ db: Database) throws -> Int {
        var count = 0
        for (row, sums, kept) in try rows(of: file, ExtentTable.extents(of: file, db), db) where sums != kept {
            count += 1
            if dropping { try write(kept, file, row, unless: nil, db) }
        }
        return count
    }

    /// The checksums of a whole file, and the number of rows that `strays` counts. `dropping`: without the checksums that
    /// it removes.
    static func examine(
        _ file: Int64, _ extents: ByteRangeSet, dropping: Bool, _ db: Database
    ) throws -> (sums: BlockChecksums, strays: Int) {
        var (all, strays) = (BlockChecksums(), 0)
        for (_, sums, kept) in try rows(of: file, extents, db) {
            strays += sums == kept ? 0 : 1
            for piece in (dropping ? kept : sums ?? kept).pieces { all.insert(piece) }
        }
        return (all, strays)
    }

    /// The rows of a file, each with its number and its checksums, nil if it is damaged; `kept`: those with an extent.
    private static func rows(
        of file: Int64, _ extents: ByteRangeSet, _ db: Database
    ) throws -> [(row: Int64, sums: BlockChecksums?, kept: BlockChecksums)] {
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT row, sums FROM sums WHERE file = ?"), arguments: [file])
        return try Array(
            rows.map { row in
                let sums = ChecksumRow.decode(row[1], file: file, row: row[0])
                let kept = sums.map { BlockChecksums($0.pieces.filter { extents.contains($0.range) }) }
                return (row[0], sums, kept ?? BlockChecksums())
            })
    }

    /// Reads the rows that cover `range`, applies `body` to their checksums, and writes the rows that changed.
    private static func change(
        _ file: Int64, around range: ByteRange, _ db: Database,
        _ body: (inout BlockChecksums) throws(CacheError) -> [ByteRange]
    ) throws -> [ByteRange] {
        let before = try sums(of: file, around: range, db)
        var after = before.sums
        let bad = try body(&after)
        guard after != before.sums || before.damagedRows > 0 else { return bad }
        let touched = Set((before.sums.pieces + after.pieces).map { $0.range.lowerBound / ChecksumRow.span })
        for row in touched.sorted() {
            try write(after, file, row, unless: before.sums, db)
        }
        return bad
    }

    /// Writes one row unless its pieces equal those of `before`; deletes the row if it has no piece.
    private static func write(
        _ sums: BlockChecksums, _ file: Int64, _ row: Int64, unless before: BlockChecksums?, _ db: Database
    ) throws {
        let bounds = ChecksumRow.bounds(of: row)
        let pieces = sums.pieces(touching: bounds)
        guard before.map({ $0.pieces(touching: bounds) != pieces }) ?? true else { return }
        if pieces.isEmpty {
            try db.cachedStatement(sql: "DELETE FROM sums WHERE file = ? AND row = ?").execute(arguments: [file, row])
        } else {
            try db.cachedStatement(sql: "INSERT OR REPLACE INTO sums (file, row, sums) VALUES (?, ?, ?)")
                .execute(arguments: [file, row, ChecksumRow.encode(sums, file: file, row: row)])
        }
    }
}
