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

    /// Whether a row references the file. Blocks.
    func hasRow(of file: Int64) throws(CacheError) -> Bool {
        do { return try pool.read { db in try Self.hasRow(file, db) } } catch { throw failure(error) }
    }

    /// Returns a page of the checksums of a file, in the order of their offsets, of runs inside `extents`; without damaged
    /// rows. Throws `.invalidField("cursor")` for a cursor of another file.
    package func sumPage(
        of file: Int64, in extents: ByteRangeSet, limit: Int, cursor: String?
    ) async throws(CacheError) -> (items: [BlockChecksums.Piece], nextCursor: String?) {
        let position = try cursor.map { (text) throws(CacheError) in try PageCursor(text, list: "checksums") }
        guard position == nil || position?.tie == String(file) else { throw PageCursor.refusal }
        let start = max(0, position?.value ?? 0)
        let found = try await read { db in
            try ChecksumTable.sums(of: file, from: start, in: extents, limit: limit + 1, db)
        }
        let page = Array(found.prefix(limit))
        guard found.count > limit, let last = page.last else { return (page, nil) }
        return (page, PageCursor(list: "checksums", value: last.range.upperBound, tie: String(file)).text)
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

    /// As ``assetIDs(after:limit:)``, only assets with cached bytes.
    package func cachedAssetIDs(after id: AssetID?, limit: Int) async throws(CacheError) -> [AssetID] {
        try await read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT id FROM assets WHERE id > ? AND EXISTS (SELECT 1 FROM extents WHERE file = file_serial)
                    ORDER BY id LIMIT ?
                    """,
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

    /// Returns the rows of the next assets in the order of their identifiers, from one snapshot; nil starts at the first.
    /// `repairing`: without the checksums that a repair removes.
    ///
    /// At most `limit` assets, and fewer if they have more than `mostPieces` checksums.
    func examinedRows(
        after id: AssetID?, repairing: Bool, limit: Int = 512, mostPieces: Int = 100_000
    ) async throws(CacheError) -> [ExaminedRows] {
        let secrets = secrets
        return try await read { db in
            let hasUnsummed = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM unsummed)") ?? false
            let ids = try Data.fetchAll(
                db, sql: "SELECT id FROM assets WHERE id > ? ORDER BY id LIMIT ?",
                arguments: [id.map(RowCoding.blob) ?? Data(), limit])
            var (page, pieces): ([ExaminedRows], Int) = ([], 0)
            for id in ids where pieces < mostPieces {
                var rows = try ExaminedRows(of: try RowCoding.assetID(id), repairing: repairing, db, secrets)
                if hasUnsummed, let file = rows.stored?.file {
                    rows.isUnsummed = try ChecksumTable.isUnsummed(file.serial, db)
                }
                pieces += rows.sums.pieces.count
                page.append(rows)
            }
            return page
        }
    }

    /// Sets `cached_bytes` to the sum of the extents.
    func correctCount(of file: Int64) async throws(CacheError) {
        try await write { db in
            try db.execute(
                sql: """
                    UPDATE assets SET cached_bytes =
                        coalesce((SELECT sum("end" - start) FROM extents WHERE file = file_serial), 0)
                    WHERE file_serial = ?
                    """, arguments: [file])
        }
    }

    /// Returns up to ten messages of SQLite's integrity check; empty if it finds no error.
    func faults() async throws(CacheError) -> [String] {
        try await read { db in
            try String.fetchAll(db, sql: "PRAGMA integrity_check(10)").filter { $0 != "ok" }
        }
    }

    /// Records that this run verified all cached bytes of the file.
    package func checked(_ file: FileName) async throws(CacheError) { try await checked([file]) }

    /// Records that this run verified all cached bytes of these files.
    func checked(_ files: [FileName]) async throws(CacheError) {
        guard !files.isEmpty else { return }
        let run = run
        try await write { db in
            let update = try db.cachedStatement(sql: "UPDATE assets SET checked_run = ? WHERE file_serial = ?")
            for file in files { try update.execute(arguments: [run, file.serial]) }
        }
    }
}

/// The rows of one asset, for the verification of a store.
struct ExaminedRows: Sendable {
    let id: AssetID
    /// Nil if the asset's row is damaged, or was removed meanwhile.
    private(set) var stored: StoredAsset?
    /// Whether the asset's row does not match its checksum.
    private(set) var isDamaged = false
    /// The checksums of the file.
    private(set) var sums = BlockChecksums()
    /// The number of checksum rows that are damaged or have no extent.
    private(set) var straySums = 0
    /// Whether `cached_bytes` differs from the sum of the extents.
    private(set) var isCountWrong = false
    /// Whether the file was written before checksums existed.
    fileprivate(set) var isUnsummed = false

    fileprivate init(of id: AssetID, repairing: Bool, _ db: Database, _ secrets: SecretBox) throws {
        self.id = id
        do {
            stored = try Catalog.storedAsset(id, db, secrets)
        } catch let error as CacheError where error.cause is DamagedRow {
            isDamaged = true
        }
        guard let stored, let file = stored.file else { return }
        (sums, straySums) = try ChecksumTable.examine(file.serial, stored.extents, dropping: repairing, db)
        isCountWrong = stored.countedBytes != stored.cachedBytes
    }
}
