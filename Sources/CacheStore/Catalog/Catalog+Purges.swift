package import CacheCore
import Foundation
import GRDB

/// One generation of an asset.
package struct AssetVersion: Hashable, Sendable {
    package let id: AssetID
    let generation: Int64
    fileprivate let createdAt: Timestamp

    package init(_ asset: SelectedAsset) {
        (id, generation, createdAt) = (asset.id, asset.generation, asset.createdAt)
    }

    package init(_ record: AssetRecord) {
        (id, generation, createdAt) = (record.id, record.generation.number, record.createdAt)
    }

    /// The columns of the row with this version; nil if the asset is of another version.
    func row(columns: String, _ db: Database) throws -> Row? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT \(columns) FROM assets WHERE id = ? AND generation = ? AND created_at = ?"),
            arguments: [RowCoding.blob(id), generation, createdAt.milliseconds])
    }
}

/// A purge that takes effect at once and deletes its assets later.
package struct PurgeRecord: Hashable, Sendable {
    package let id: String
    /// The token that made it; nil: the service needs none.
    package let owner: TokenOwner?
    /// The numbers of selected and of pinned assets, and their bytes on disk.
    package let assets, pinnedAssets: Int
    package let bytes: Int64
    package let expiresAt: Timestamp
    /// The number of the purge in the catalog.
    fileprivate(set) var number: Int64 = 0
    /// The marked assets and their cached bytes. The others had changed meanwhile.
    package fileprivate(set) var marked = 0
    fileprivate(set) var markedBytes: Int64 = 0

    package init(
        id: String, owner: TokenOwner?, assets: Int, pinnedAssets: Int, bytes: Int64, expiresAt: Timestamp
    ) {
        self.id = id
        self.owner = owner
        self.assets = assets
        self.pinnedAssets = pinnedAssets
        self.bytes = bytes
        self.expiresAt = expiresAt
    }

    /// Decodes a row of `purges`.
    fileprivate init(_ row: Row) throws {
        self.init(
            id: row["id"], owner: try JobRow.owner(row), assets: row["assets"], pinnedAssets: row["pinned"],
            bytes: row["bytes"], expiresAt: Timestamp(milliseconds: row["expires_at"]))
        (number, marked, markedBytes) = (row["number"], row["marked"], row["marked_bytes"])
    }
}

/// A marked asset that was removed from the catalog.
package struct RemovedAsset: Sendable {
    package let id: AssetID
    package let key, origin: String
    package let extents: [ByteRange]
    /// The file to unlink; nil: the asset had none.
    let file: FileName?
    /// The number of the purge that has selected it.
    let purge: Int64
}

/// Purges: durable marks of the selected assets.
///
/// 1. `mark` adds the assets to the table `purged`. From then on `asset` does not return them, and lists omit them.
/// 2. A commit that stores such an asset again deletes its marked row first.
/// 3. `removePurged` deletes the other rows in batches.
extension Catalog {
    /// The largest number of purges with marked assets, and of those that have ended and are still known.
    package static let mostPurges = 1000

    /// Marks the assets that still have these versions, in one transaction. Forgets purges that have ended and expired.
    /// Throws `overloaded` if too many purges have marked assets.
    func mark(
        _ purge: PurgeRecord, _ versions: [AssetVersion], at now: Timestamp, most: Int = mostPurges
    ) async throws(CacheError) -> PurgeRecord {
        let purged = purged
        guard purged.purges < most else {
            throw CacheError(.overloaded, "Too many purges are running: wait until one has ended.")
        }
        return try await write { db in
            try db.execute(
                sql: """
                    DELETE FROM purges WHERE number NOT IN (SELECT purge FROM purged)
                        AND (expires_at <= ? OR number <= (SELECT max(number) FROM purges) - ?)
                    """, arguments: [now.milliseconds, most])
            var purge = purge
            try db.execute(
                sql: """
                    INSERT INTO purges (id, owner, owner_limits, assets, pinned, bytes, marked, marked_bytes, expires_at)
                    VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?)
                    """,
                arguments: [
                    purge.id, purge.owner?.id, try JobRow.limits(of: purge.owner), purge.assets, purge.pinnedAssets,
                    purge.bytes, purge.expiresAt.milliseconds,
                ])
            purge.number = db.lastInsertedRowID
            let marks = try Self.marks(versions, of: purge.number, besides: purged, db)
            (purge.marked, purge.markedBytes) = (marks.count, marks.values.reduce(0) { $0 + $1.bytes })
            try db.execute(
                sql: "UPDATE purges SET marked = ?, marked_bytes = ? WHERE number = ?",
                arguments: [purge.marked, purge.markedBytes, purge.number])
            db.afterNextTransaction { _ in purged.add(marks) }
            return purge
        }
    }

    /// Inserts the marks of the assets that have these versions and no mark.
    private static func marks(
        _ versions: [AssetVersion], of purge: Int64, besides purged: PurgedAssets, _ db: Database
    ) throws -> [AssetID: PurgedAssets.Mark] {
        let insert = try db.cachedStatement(sql: "INSERT INTO purged (asset, purge) VALUES (?, ?)")
        var marks: [AssetID: PurgedAssets.Mark] = [:]
        for version in versions where !purged.contains(version.id) {
            guard let row = try version.row(columns: "cached_bytes", db) else { continue }
            try insert.execute(arguments: [RowCoding.blob(version.id), purge])
            marks[version.id] = PurgedAssets.Mark(purge: purge, bytes: row[0])
        }
        return marks
    }

    /// Returns the extents of the marked assets among these.
    package func purgedExtents(of ids: [AssetID]) async throws(CacheError) -> [AssetID: [ByteRange]] {
        try await read { db in
            let select = try db.cachedStatement(
                sql: "SELECT file_serial FROM purged JOIN assets ON id = asset WHERE asset = ?")
            var extents: [AssetID: [ByteRange]] = [:]
            for id in ids {
                guard let file = try Int64.fetchOne(select, arguments: [RowCoding.blob(id)]) else { continue }
                extents[id] = try ExtentTable.extents(of: file, db).runs
            }
            return extents
        }
    }

    /// Deletes up to `limit` marked rows in one transaction and returns them. Their files must be unlinked, and the marks
    /// then be ended in `purged`. Rows of assets with a reported removal are left to that.
    func removePurged(limit: Int) async throws(CacheError) -> [RemovedAsset] {
        guard !purged.isEmpty else { return [] }
        let purged = purged
        return try await write { db in
            var removed: [RemovedAsset] = []
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT id, key, origin, generation, file_serial, purge FROM purged JOIN assets ON id = asset
                    """)
            let delete = try db.cachedStatement(sql: "DELETE FROM assets WHERE id = ?")
            while removed.count < limit, let row = try rows.next() {
                let id = try RowCoding.assetID(row[0])
                guard purged.contains(id) else { continue }
                let file = (row[4] as Int64?).map { FileName(asset: id, generation: row[3], serial: $0) }
                let extents = try file.map { try ExtentTable.extents(of: $0.serial, db).runs } ?? []
                removed.append(
                    RemovedAsset(id: id, key: row[1], origin: row[2], extents: extents, file: file, purge: row[5]))
            }
            for asset in removed { try delete.execute(arguments: [RowCoding.blob(asset.id)]) }
            return removed
        }
    }

    /// The purge's assets that are removed, with their cached bytes, and whether none is left.
    package func progress(of purge: PurgeRecord) -> (assets: Int, bytes: Int64, isDone: Bool) {
        let left = purged.left(of: purge.number)
        return (purge.marked - left.assets, purge.markedBytes - left.bytes, left.assets == 0)
    }

    /// Whether assets are marked and not removed yet.
    package var hasPurged: Bool { !purged.isEmpty }

    /// Whether a purge has selected the asset, and it is not removed yet.
    package func isPurged(_ id: AssetID) -> Bool { purged.contains(id) }

    /// Forgets the mark of an open asset with a reported removal. The removal deletes its row.
    package func forgetPurged(_ id: AssetID) { purged.remove([id]) }

    /// Reads the marks, and the purges that have any or have not expired, at the start.
    static func purges(_ db: Database, into purged: PurgedAssets) throws -> [PurgeRecord] {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT asset, purge, cached_bytes FROM purged JOIN assets ON id = asset")
        var marks: [AssetID: PurgedAssets.Mark] = [:]
        while let row = try rows.next() {
            marks[try RowCoding.assetID(row[0])] = PurgedAssets.Mark(purge: row[1], bytes: row[2])
        }
        purged.add(marks)
        return try Row.fetchAll(db, sql: "SELECT * FROM purges ORDER BY number").map { try PurgeRecord($0) }
    }
}
