package import CacheCore
import Foundation
import GRDB

extension Catalog {
    /// Returns an asset with its extents; nil if it is unknown or a purge has selected it. Throws `storageCorrupt` with a `DamagedRow` as the
    /// cause if the row's checksum does not match. The extents are not compared with the file: `Store.load` does that.
    package func asset(_ id: AssetID) async throws(CacheError) -> StoredAsset? {
        guard assetIDs.mayContain(id), !purged.contains(id) else { return nil }
        let secrets = secrets
        return try await read { try Self.storedAsset(id, $0, secrets) }
    }

    /// Replaces timestamps in the future by `now`, and makes the affected responses stale. Blocks.
    ///
    /// Such timestamps exist if the wall clock was set back. Without the correction these assets would not age until
    /// the clock reaches the old time. Returns whether any were found.
    func clampFutureTimestamps(at now: Timestamp) throws(CacheError) -> Bool {
        do {
            return try pool.write { db in
                // The index on `last_access_at` answers this without a scan. One second ahead is tolerated.
                let newest = try Int64.fetchOne(db, sql: "SELECT max(last_access_at) FROM assets") ?? .min
                guard newest > (now + .seconds(1)).milliseconds else { return false }
                try db.execute(
                    sql: """
                        UPDATE assets SET created_at = min(created_at, :now), last_access_at = min(last_access_at, :now),
                            received_at = min(received_at, :now),
                            fresh_until = CASE WHEN received_at > :now THEN min(fresh_until, :now) ELSE fresh_until END
                        WHERE max(created_at, last_access_at, received_at) > :now
                        """, arguments: ["now": now.milliseconds])
                try db.execute(
                    sql: "UPDATE segments SET arrived_at = min(arrived_at, :now), read_at = min(read_at, :now)",
                    arguments: ["now": now.seconds])
                return true
            }
        } catch {
            throw CacheError(database: error)
        }
    }

    /// Applies an administrator's changes to an asset; returns nil if the asset is unknown. Throws `conflict` if the
    /// total length of the pinned assets would exceed `maxPinnedBytes`.
    package func updateAsset(
        _ id: AssetID, _ patch: AssetPatch, maxPinnedBytes: Int64? = nil
    ) async throws(CacheError) -> StoredAsset? {
        let (secrets, purged) = (secrets, purged)
        return try await write { db in
            guard !purged.contains(id) else { return nil }
            let name = RowCoding.blob(id)
            if let isPinned = patch.isPinned {
                try db.execute(
                    sql: "UPDATE assets SET is_pinned = ?, pinned_until = ? WHERE id = ?",
                    arguments: [isPinned, patch.pinnedUntil?.milliseconds, name])
                if isPinned, let maxPinnedBytes { try Self.checkPins(atMost: maxPinnedBytes, db) }
            }
            if let tags = patch.tags {
                try db.execute(
                    sql: "UPDATE assets SET tags = ? WHERE id = ?", arguments: [try RowCoding.json(tags), name])
            }
            if let ttl = patch.ttl.update {
                try db.execute(
                    sql: "UPDATE assets SET ttl = ? WHERE id = ?", arguments: [ttl?.wholeMilliseconds, name])
            }
            if let verify = patch.verify.update {
                try db.execute(
                    sql: "UPDATE assets SET verify = ? WHERE id = ?", arguments: [verify?.rawValue, name])
            }
            if let freshUntil = patch.freshUntil.update {
                try db.execute(
                    sql: "UPDATE assets SET fresh_until = ? WHERE id = ?",
                    arguments: [freshUntil?.milliseconds, name])
            }
            return try Self.storedAsset(id, db, secrets)
        }
    }

    /// Throws `conflict` if the pinned assets exceed the limit. An asset counts with its full length even if it is
    /// partly cached; therefore a fill cannot exceed the limit later.
    private static func checkPins(atMost most: Int64, _ db: Database) throws {
        let bytes = try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce(sum(max(coalesce(length, 0), cached_bytes)), 0) FROM assets
                    WHERE is_pinned AND id NOT IN (SELECT asset FROM purged)
                """)
        guard bytes ?? 0 <= most else {
            throw CacheError(.conflict, "The pinned assets would exceed the policy's maxPinnedBytes.")
        }
    }

    /// Makes the responses of these assets stale, in one transaction.
    package func expire(_ ids: [AssetID]) async throws(CacheError) {
        try await write { db in
            let update = try db.cachedStatement(sql: "UPDATE assets SET fresh_until = NULL WHERE id = ?")
            for id in ids { try update.execute(arguments: [RowCoding.blob(id)]) }
        }
    }

    /// Removes the pins that expire at or before `now`; returns the assets that were unpinned.
    package func endPins(at now: Timestamp) async throws(CacheError) -> [AssetID] {
        try await write { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    UPDATE assets SET is_pinned = 0, pinned_until = NULL WHERE pinned_until <= ? RETURNING id
                    """, arguments: [now.milliseconds])
            return try rows.map { try RowCoding.assetID($0[0]) }
        }
    }

    /// Passes the extents of every asset to the eviction policy, least recently used assets first, from one database
    /// snapshot. Omits assets that a purge has selected. Also completes `assetIDs`.
    package func eachAsset(_ tell: @escaping @Sendable (EvictionEntry) -> Void) async throws(CacheError) {
        let (assetIDs, purged) = (assetIDs, purged)
        try await read { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT id, origin, last_access_at, start, "end", tags FROM assets
                    LEFT JOIN extents ON file = file_serial ORDER BY last_access_at, id
                    """)
            var entry: EvictionEntry?
            while let row = try rows.next() {
                // Skips rows with invalid values; `Store.load` detects a damaged row when the asset is opened.
                guard let blob = Data.fromDatabaseValue(row[0]), let id = try? RowCoding.assetID(blob) else { continue }
                assetIDs.add(id)
                guard !purged.contains(id), let start = Self.entry(row, of: id) else { continue }
                // The join returns one row per extent: the entry is complete when the asset changes.
                if let done = entry, done.asset != start.asset {
                    tell(done)
                    entry = nil
                }
                entry = entry ?? start
                if let first = Int64.fromDatabaseValue(row[3]), let end = Int64.fromDatabaseValue(row[4]), first < end {
                    entry?.extents.append(first..<end)
                }
            }
            if let entry { tell(entry) }
        }
        assetIDs.complete()
    }

    /// Decodes the asset part of a joined row. Returns nil if a value is invalid.
    private static func entry(_ row: Row, of asset: AssetID) -> EvictionEntry? {
        guard let lastUse = Int64.fromDatabaseValue(row[2]), let json = String.fromDatabaseValue(row[5]),
            let tags = try? tags(json)
        else { return nil }
        return EvictionEntry(
            asset: asset, owners: AssetOwners(origin: String.fromDatabaseValue(row[1]) ?? "", tags: tags),
            lastAccessAt: Timestamp(milliseconds: lastUse), extents: [])
    }

    /// Decodes the tags. Most assets have none: the empty list skips the JSON decoder.
    private static func tags(_ json: String) throws -> [String] { json == "[]" ? [] : try RowCoding.value(json: json) }

    /// The claimed bytes of all assets, for a start; nil if the catalog cannot tell. Damage is left to those who need the rows.
    package func estimatedBytes() async -> Int64? {
        try? await pool.read { db in try Int64.fetchOne(db, sql: "SELECT coalesce(sum(cached_bytes), 0) FROM assets") }
    }

    /// Returns the sums over all rows, without pending work.
    package func totals() async throws(CacheError) -> CatalogTotals {
        try await read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT count(*), coalesce(sum(cached_bytes), 0), (SELECT count(*) FROM extents) FROM assets
                    """)
            guard let row else { return CatalogTotals() }
            return CatalogTotals(assets: row[0], extents: row[2], cachedBytes: row[1])
        }
    }

    /// Returns the assets without bytes and without a pin that exceed `limit`, longest unread first; at most `most`.
    package func emptyAssets(beyond limit: Int, atMost most: Int) async throws(CacheError) -> [AssetID] {
        try await read { db in
            let rows = "FROM assets INDEXED BY assets_by_cached_bytes WHERE cached_bytes = 0 AND NOT is_pinned"
            let count = try Int.fetchOne(
                db, sql: "SELECT count(*) FROM (SELECT 1 \(rows) LIMIT ?)", arguments: [limit + most])
            let surplus = max(0, (count ?? 0) - limit)
            guard surplus > 0 else { return [] }
            return try Row.fetchAll(
                db, sql: "SELECT id \(rows) ORDER BY last_access_at, id LIMIT ?", arguments: [surplus]
            ).map { try RowCoding.assetID($0[0]) }
        }
    }

    /// Reads an asset's row, verifies its checksum, and reads its extents. Returns nil if the asset is unknown.
    static func storedAsset(_ id: AssetID, _ db: Database, _ secrets: SecretBox) throws -> StoredAsset? {
        let rows = try Row.fetchCursor(
            db.cachedStatement(
                sql: "SELECT *, \(ChecksummedTable.assets.isRight) AS is_right FROM assets WHERE id = ?"),
            arguments: [RowCoding.blob(id)])
        guard let row = try rows.next() else { return nil }
        guard row["is_right"] else { throw DamagedRow.error(id) }
        let asset = try AssetRow(row, secrets: secrets)
        let extents = try asset.file.map { try ExtentTable.extents(of: $0.serial, db) }
        return StoredAsset(
            record: asset.record, extents: extents ?? ByteRangeSet(), file: asset.file, checkedRun: asset.checkedRun,
            countedBytes: asset.cachedBytes)
    }
}

/// An asset as input of the eviction policy.
package struct EvictionEntry: Hashable, Sendable {
    package var asset: AssetID
    /// The origin and the tags, for quotas.
    package var owners: AssetOwners
    package var lastAccessAt: Timestamp
    /// Cached ranges in ascending order; empty if nothing is cached.
    package var extents: [ByteRange]
}

/// Sums over all rows of `assets` and `extents`.
package struct CatalogTotals: Hashable, Sendable {
    package var assets: Int
    package var extents: Int
    package var cachedBytes: Int64

    package init(assets: Int = 0, extents: Int = 0, cachedBytes: Int64 = 0) {
        self.assets = assets
        self.extents = extents
        self.cachedBytes = cachedBytes
    }
}

extension Catalog {
    /// Returns the length and the cached bytes of each known asset. The length is nil if it is unknown.
    package func sizes(
        of ids: some Collection<AssetID> & Sendable
    ) async throws(CacheError) -> [AssetID: (length: Int64?, cachedBytes: Int64)] {
        let (purged, assetIDs) = (purged, assetIDs)
        return try await read { db in
            let statement = try db.cachedStatement(sql: "SELECT length, cached_bytes FROM assets WHERE id = ?")
            var sizes: [AssetID: (length: Int64?, cachedBytes: Int64)] = [:]
            for id in ids where assetIDs.mayContain(id) && !purged.contains(id) {
                sizes[id] = try Row.fetchOne(statement, arguments: [RowCoding.blob(id)]).map { ($0[0], $0[1]) }
            }
            return sizes
        }
    }
}
