import CacheCore
import Foundation
import GRDB
import Synchronization

/// The transaction of a commit.
extension Catalog {
    /// Follow-up work of a commit.
    struct Committed: Sendable {
        /// Files that no row references any more: to be unlinked.
        var orphans: [FileName] = []
        /// Those of the orphans that belonged to closed assets of a purge.
        var purged: Set<FileName> = []
        /// Ranges that do not match their checksums or cannot be read. The commit has removed their extents.
        var spoiled: [(file: SparseFile, ranges: [ByteRange])] = []
    }

    /// Applies a batch in one transaction, durable on return. Blocks.
    ///
    /// Throws `storageCorrupt` with a `DamagedCatalog` as the cause if SQLite reports corruption. `isStuck` stays true
    /// until a later commit succeeds.
    func commit(_ work: PendingWork) throws(CacheError) -> Committed {
        do {
            let committed = try pool.write { db in try apply(work, db) }
            isStuck.store(false, ordering: .relaxed)
            return committed
        } catch {
            // A commit never violates a constraint of an intact catalog: a violation shows an index that lacks a row.
            let isContradicted = (error as? DatabaseError)?.resultCode == .SQLITE_CONSTRAINT
            let failure = isContradicted ? damage("\(error)") : failure(error)
            if failure.cause is DamagedCatalog { isStuck.store(true, ordering: .relaxed) }
            throw failure
        }
    }

    /// Returns the files that the rows of these assets reference. Blocks.
    func files(of assets: Set<AssetID>) throws(CacheError) -> [FileName] {
        do {
            return try pool.read { db in try assets.compactMap { try Self.named($0, db)?.file } }
        } catch {
            throw failure(error)
        }
    }

    /// Applies the batch in the order that `PendingWork` documents, inside the transaction.
    private func apply(_ work: PendingWork, _ db: Database) throws -> Committed {
        var (orphans, spoiled): ([FileName], [(file: SparseFile, ranges: [ByteRange])]) = ([], [])
        // Removals first: work reported after a removal belongs to a new life of the asset.
        var replaced: Set<FileName> = []
        for asset in work.removals {
            let files = try Self.remove(asset, db)
            if purged.contains(asset) { replaced.formUnion(files) } else { orphans += files }
        }
        // Cuts before growth: a range that was cut and written again stays claimed.
        for (serial, cut) in work.cuts {
            try ExtentTable.remove(cut.ranges.runs, from: serial, db)
            let bad = try ChecksumTable.release(cut.ranges, of: serial, look: cut.file.sum, db)
            try Self.giveUp(bad, of: cut.file, serial, &spoiled, db)
        }
        for begun in work.begun.values {
            if let former = begun.former {
                guard !purged.contains(begun.record.id), try Self.named(begun.record.id, db)?.file == former else {
                    orphans += [begun.file?.name].compactMap(\.self)
                    continue
                }
            }
            // The row that a purge has selected ends, with its settings.
            if purged.contains(begun.record.id) { replaced.formUnion(try Self.remove(begun.record.id, db)) }
            orphans += try begin(begun, db)
        }
        orphans += replaced
        if !purged.isEmpty {
            let ended = Array(work.removals) + work.begun.filter { $0.value.former == nil }.keys
            db.afterNextTransaction { [purged] _ in purged.remove(ended) }
        }
        for record in work.refreshed.values { try refresh(record, db) }
        for (serial, growth) in work.growth where try Self.hasRow(serial, db) {
            let (runs, written) = (growth.ranges.runs, growth.file.writtenSums(in: growth.ranges))
            try ExtentTable.add(runs, to: serial, db)
            if let cipher = growth.file.cipher { try NonceTable.add(cipher.runs(in: runs), to: serial, db) }
            let bad = try ChecksumTable.claim(runs, of: serial, written: written, look: growth.file.sum, db)
            try Self.giveUp(bad, of: growth.file, serial, &spoiled, db)
        }
        for (asset, use) in work.uses { try Self.use(asset, use, db) }
        // Only files without a row are orphans.
        orphans += try work.abandoned.filter { try !Self.hasRow($0.serial, db) }
        return Committed(orphans: orphans, purged: replaced, spoiled: spoiled)
    }

    /// Deletes the extents of ranges that failed verification and adds the ranges to `spoiled`.
    private static func giveUp(
        _ bad: [ByteRange], of file: SparseFile, _ serial: Int64,
        _ spoiled: inout [(file: SparseFile, ranges: [ByteRange])], _ db: Database
    ) throws {
        guard !bad.isEmpty else { return }
        try ExtentTable.remove(bad, from: serial, db)
        spoiled.append((file, bad))
    }

    /// Deletes an asset's row; returns its file. Extents, checksums and segments are deleted by cascade.
    private static func remove(_ asset: AssetID, _ db: Database) throws -> [FileName] {
        guard let row = try named(asset, db) else { return [] }
        try db.cachedStatement(sql: "DELETE FROM assets WHERE id = ?").execute(arguments: [RowCoding.blob(asset)])
        return [row.file].compactMap(\.self)
    }

    /// Inserts or replaces a row. If its file changes, the extents of the old file are deleted and the old file is
    /// returned as an orphan.
    private func begin(_ begun: PendingWork.Begun, _ db: Database) throws -> [FileName] {
        let record = begun.record
        var serial = begun.file?.name?.serial
        guard let row = try Self.named(record.id, db) else {
            assetIDs.add(record.id)
            // Prepared once: the statement is compiled with its triggers, which takes longer than its execution.
            try db.cachedStatement(sql: AssetRow.insertSQL).execute(
                arguments: try AssetRow.columns.arguments(of: .init(record: record, serial: serial), secrets))
            try Self.addKey(of: begun.file, db)
            return []
        }
        // No file was given: the row keeps its file if the generation is the same.
        if serial == nil, row.generation == record.generation.number { serial = row.file?.serial }
        var orphans: [FileName] = []
        if let old = row.file, old.serial != serial {
            try ExtentTable.removeAll(of: old.serial, db)
            orphans.append(old)
        }
        try update(record, serial: serial, db)
        try Self.addKey(of: begun.file, db)
        return orphans
    }

    /// Stores the key of a new encrypted file.
    private static func addKey(of file: SparseFile?, _ db: Database) throws {
        guard let serial = file?.name?.serial, let key = file?.cipher?.sealedKey else { return }
        try NonceTable.add(key, of: serial, db)
    }

    /// Updates the row if it still has the record's generation.
    private func refresh(_ record: AssetRecord, _ db: Database) throws {
        guard let row = try Self.named(record.id, db), row.generation == record.generation.number else { return }
        try update(record, serial: row.file?.serial, db)
    }

    /// Updates the columns of a row that a commit owns (`AssetRow.refreshSQL`).
    private func update(_ record: AssetRecord, serial: Int64?, _ db: Database) throws {
        try db.cachedStatement(sql: AssetRow.refreshSQL).execute(
            arguments: try AssetRow.columns.arguments(of: .init(record: record, serial: serial), secrets))
    }

    /// Updates the time of the last use and the hit counter of a row.
    private static func use(_ asset: AssetID, _ use: PendingWork.Use, _ db: Database) throws {
        try db.cachedStatement(
            sql: "UPDATE assets SET last_access_at = max(last_access_at, ?), hits = hits + ? WHERE id = ?"
        ).execute(arguments: [use.at.milliseconds, use.hits, RowCoding.blob(asset)])
    }

    /// Whether a row references the file with this serial.
    static func hasRow(_ serial: Int64, _ db: Database) throws -> Bool {
        try Bool.fetchOne(
            db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM assets WHERE file_serial = ?)"),
            arguments: [serial]) ?? false
    }

    /// Reads the generation and the file of a row; nil if the asset is unknown.
    private static func named(_ asset: AssetID, _ db: Database) throws -> (generation: Int64, file: FileName?)? {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT generation, file_serial FROM assets WHERE id = ?"),
            arguments: [RowCoding.blob(asset)])
        guard let row else { return nil }
        let generation: Int64 = row[0]
        return (
            generation,
            (row[1] as Int64?).map { FileName(asset: asset, generation: generation, serial: $0) }
        )
    }
}
