import CacheCore
import Foundation
import GRDB

/// The tables of encrypted files: `file_keys`, the sealed key of each file, and `nonces`, the nonces of its ranges. Each
/// extent of such a file is covered by `nonces`; a file without a row in `file_keys` is not encrypted.
enum NonceTable {
    /// Stores the sealed key of a new file.
    static func add(_ key: SealedKey, of file: Int64, _ db: Database) throws {
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO file_keys (file, master_key, sealed) VALUES (?, ?, ?)")
            .execute(arguments: [file, key.masterKey, key.bytes])
    }

    /// The sealed key of a file; nil if it is not encrypted.
    static func key(of file: Int64, _ db: Database) throws -> SealedKey? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT master_key, sealed FROM file_keys WHERE file = ?"), arguments: [file]
        ).map { SealedKey(masterKey: $0[0], bytes: $0[1]) }
    }

    /// The nonces of a file.
    static func runs(of file: Int64, _ db: Database) throws -> NonceRuns {
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT start, \"end\", nonce FROM nonces WHERE file = ? ORDER BY start"),
            arguments: [file])
        var runs = NonceRuns()
        while let row = try rows.next() { runs.insert(run(row)) }
        return runs
    }

    /// Stores the nonces of written ranges, in place of earlier ones.
    static func add(_ runs: [NonceRuns.Run], to file: Int64, _ db: Database) throws {
        for run in runs { try revise(file, around: run.range, db) { $0.insert(run) } }
    }

    /// Removes the nonces of ranges.
    static func remove(_ ranges: some Sequence<ByteRange>, from file: Int64, _ db: Database) throws {
        for range in ranges where !range.isEmpty { try revise(file, around: range, db) { $0.remove(range) } }
    }

    /// Removes the nonces and the key of a file.
    static func removeAll(of file: Int64, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM nonces WHERE file = ?", arguments: [file])
        try db.execute(sql: "DELETE FROM file_keys WHERE file = ?", arguments: [file])
    }

    /// Reads the rows that overlap or touch `range`, changes them, and writes them back if they differ.
    private static func revise(
        _ file: Int64, around range: ByteRange, _ db: Database, _ change: (inout NonceRuns) -> Void
    ) throws {
        let arguments: StatementArguments = [file, range.lowerBound, range.upperBound]
        let touching = "FROM nonces WHERE file = ? AND \"end\" >= ? AND start <= ?"
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT start, \"end\", nonce \(touching) ORDER BY start"), arguments: arguments)
        let before = NonceRuns(rows.map(run))
        var after = before
        change(&after)
        guard after != before else { return }
        try db.cachedStatement(sql: "DELETE \(touching)").execute(arguments: arguments)
        for run in after.runs {
            try db.cachedStatement(sql: "INSERT INTO nonces (file, start, \"end\", nonce) VALUES (?, ?, ?, ?)")
                .execute(
                    arguments: [
                        file, run.range.lowerBound, run.range.upperBound, Int64(bitPattern: run.nonce),
                    ])
        }
    }

    private static func run(_ row: Row) -> NonceRuns.Run {
        NonceRuns.Run(range: row[0]..<row[1], nonce: UInt64(bitPattern: row[2] as Int64))
    }
}
