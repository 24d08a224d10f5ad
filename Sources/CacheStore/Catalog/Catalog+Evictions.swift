package import CacheCore
import GRDB

/// The eviction log: the table `evictions`.
extension Catalog {
    /// Maximum number of log entries, whatever their age.
    static let mostEvictions: Int64 = 100_000

    /// Appends entries to the eviction log, in the given order. Deletes entries older than `time` and entries above the
    /// limit.
    package func logEvictions(
        _ records: [EvictionRecord], forgettingBefore time: Timestamp
    ) async throws(CacheError) {
        try await write { db in
            for record in records {
                try db.cachedStatement(
                    sql: """
                        INSERT INTO evictions (at, reason, asset, key, origin, bytes, ranges) VALUES (?, ?, ?, ?, ?, ?, ?)
                        """
                ).execute(arguments: [
                    record.at.milliseconds, record.reason.rawValue, RowCoding.blob(record.assetID), record.key,
                    record.origin, record.bytes, try RowCoding.json(record.ranges),
                ])
            }
            try db.execute(sql: "DELETE FROM evictions WHERE at < ?", arguments: [time.milliseconds])
            try db.execute(
                sql: "DELETE FROM evictions WHERE sequence <= (SELECT max(sequence) FROM evictions) - ?",
                arguments: [Self.mostEvictions])
        }
    }

    /// Returns one page of the eviction log, newest entry first. The page size is limited to 1…1,000. Throws
    /// `invalidField("cursor")` if the cursor does not belong to this list.
    package func evictionPage(
        _ query: EvictionQuery, since time: Timestamp
    ) async throws(CacheError) -> (items: [EvictionRecord], nextCursor: String?) {
        let limit = min(max(query.limit, 1), 1000)
        // The list is sorted in descending order, so the cursor is an upper bound.
        let end = try query.cursor.map { text throws(CacheError) in try PageCursor(text, list: "evictions").value }
        return try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT sequence, at, reason, asset, key, origin, bytes, ranges FROM evictions
                    WHERE sequence < :end AND \(Self.evictionConditions)
                    ORDER BY sequence DESC LIMIT :limit
                    """,
                arguments: Self.arguments(query, since: time) + ["end": end ?? Int64.max, "limit": limit + 1])
            let page = rows.prefix(limit)
            let next =
                rows.count > limit ? page.last.map { PageCursor(list: "evictions", value: $0["sequence"]).text } : nil
            return (try page.map(Self.eviction), next)
        }
    }

    /// Returns the number of entries on all pages of the eviction log.
    package func evictionCount(_ query: EvictionQuery, since time: Timestamp) async throws(CacheError) -> Int {
        try await read { db in
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM evictions WHERE \(Self.evictionConditions)",
                arguments: Self.arguments(query, since: time)) ?? 0
        }
    }

    /// SQL conditions of an eviction list.
    private static let evictionConditions = """
        at >= :time AND (:origin IS NULL OR origin = :origin) AND (:asset IS NULL OR asset = :asset)
            AND (:reason IS NULL OR reason = :reason)
        """

    private static func arguments(_ query: EvictionQuery, since time: Timestamp) -> StatementArguments {
        [
            "time": time.milliseconds, "origin": query.origin, "asset": query.assetID.map(RowCoding.blob),
            "reason": query.reason?.rawValue,
        ]
    }

    /// Decodes a log entry. Throws `storageCorrupt` if a value is invalid.
    private static func eviction(_ row: Row) throws -> EvictionRecord {
        EvictionRecord(
            at: Timestamp(milliseconds: row["at"]), reason: try RowCoding.choice(row["reason"], "an eviction's reason"),
            assetID: try RowCoding.assetID(row["asset"]), key: row["key"], origin: row["origin"], bytes: row["bytes"],
            ranges: try RowCoding.value(json: row["ranges"]))
    }
}
