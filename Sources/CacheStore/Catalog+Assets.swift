package import CacheCore
import Foundation
import GRDB

extension Catalog {
    /// Nil where the asset is not known. What the file really holds is `Store.load`'s to check.
    package func asset(_ id: AssetID) async throws(CacheError) -> StoredAsset? {
        let secrets = secrets
        return try await read { try Self.storedAsset(id, $0, secrets) }
    }

    /// Changes what an administrator sets; nil where the asset is not known.
    package func updateAsset(_ id: AssetID, _ change: AssetChange) async throws(CacheError) -> StoredAsset? {
        let secrets = secrets
        return try await write { db in
            let name = RowCoding.blob(id)
            if let isPinned = change.isPinned {
                try db.execute(sql: "UPDATE assets SET is_pinned = ? WHERE id = ?", arguments: [isPinned, name])
            }
            if let tags = change.tags {
                try db.execute(
                    sql: "UPDATE assets SET tags = ? WHERE id = ?", arguments: [try RowCoding.json(tags), name])
            }
            if let ttl = change.ttl {
                try db.execute(
                    sql: "UPDATE assets SET ttl = ? WHERE id = ?", arguments: [ttl?.wholeMilliseconds, name])
            }
            if let freshUntil = change.freshUntil {
                try db.execute(
                    sql: "UPDATE assets SET fresh_until = ? WHERE id = ?",
                    arguments: [freshUntil?.milliseconds, name])
            }
            return try Self.storedAsset(id, db, secrets)
        }
    }

    /// The next assets in the order of their names, for the eviction policy's picture at the start; empty at the end.
    package func evictionBatch(after last: AssetID?, limit: Int) async throws(CacheError) -> [EvictionEntry] {
        try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, generation, file_serial, length, last_access_at, created_at, is_pinned FROM assets
                    WHERE id > ? ORDER BY id LIMIT ?
                    """,
                arguments: [last.map(RowCoding.blob) ?? Data(), limit])
            return try rows.map { row in
                EvictionEntry(
                    id: try RowCoding.assetID(row["id"]), generation: row["generation"], length: row["length"],
                    extents: try (row["file_serial"] as Int64?).map { try ExtentTable.extents(of: $0, db) }
                        ?? ByteRangeSet(),
                    lastAccessAt: Timestamp(milliseconds: row["last_access_at"]),
                    createdAt: Timestamp(milliseconds: row["created_at"]), isPinned: row["is_pinned"])
            }
        }
    }

    /// What all rows add up to; pending work is not among it.
    package func totals() async throws(CacheError) -> CatalogTotals {
        try await read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT count(*), coalesce(sum(cached_bytes), 0), (SELECT count(*) FROM extents) FROM assets
                    """)
            guard let row else { return CatalogTotals(assets: 0, extents: 0, cachedBytes: 0) }
            return CatalogTotals(assets: row[0], extents: row[2], cachedBytes: row[1])
        }
    }

    static func storedAsset(_ id: AssetID, _ db: Database, _ secrets: SecretBox) throws -> StoredAsset? {
        let row = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT * FROM assets WHERE id = ?"), arguments: [RowCoding.blob(id)])
        guard let asset = try row.map({ try AssetRow($0, secrets: secrets) }) else { return nil }
        let extents = try asset.file.map { try ExtentTable.extents(of: $0.serial, db) }
        return StoredAsset(record: asset.record, extents: extents ?? ByteRangeSet(), file: asset.file)
    }
}

/// What an administrator changes of an asset; nil leaves a value as it is.
package struct AssetChange: Hashable, Sendable {
    package var isPinned: Bool?
    package var tags: [String]?
    /// `.some(nil)` takes the asset's own lifetime away.
    package var ttl: Duration??
    /// `.some(nil)` makes it stale: it must be confirmed before its next use.
    package var freshUntil: Timestamp??

    package init(
        isPinned: Bool? = nil, tags: [String]? = nil, ttl: Duration?? = nil, freshUntil: Timestamp?? = nil
    ) {
        self.isPinned = isPinned
        self.tags = tags
        self.ttl = ttl
        self.freshUntil = freshUntil
    }
}

/// What the eviction policy wants to know of an asset.
package struct EvictionEntry: Hashable, Sendable {
    package var id: AssetID
    package var generation: Int64
    package var length: Int64?
    package var extents: ByteRangeSet
    package var lastAccessAt: Timestamp
    package var createdAt: Timestamp
    package var isPinned: Bool
}

/// What all rows add up to.
package struct CatalogTotals: Hashable, Sendable {
    package var assets: Int
    package var extents: Int
    package var cachedBytes: Int64
}
