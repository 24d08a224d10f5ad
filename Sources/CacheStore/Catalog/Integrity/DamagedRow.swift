import CacheCore
import GRDB

/// Cause of a `storageCorrupt` error: the checksum of an asset's row does not match.
struct DamagedRow: Error {
    let asset: AssetID

    /// The `storageCorrupt` error with a `DamagedRow` as its cause.
    static func error(_ asset: AssetID) -> CacheError {
        CacheError(
            .storageCorrupt, "The catalog row of the asset \(asset) is damaged.", cause: DamagedRow(asset: asset))
    }
}

extension Catalog {
    /// Deletes the damaged rows of jobs, job items, origins, the policy and the queue of webhooks, before they are read. A
    /// job is deleted with all its items. Returns the names of the deleted rows.
    static func dropDamagedRows(_ db: Database) throws -> [String] {
        let damaged = try tablesWithDamagedRows(db)
        // Indexes are rebuilt first: an index may still contain the old value of a damaged row, and SQLite would report
        // the whole catalog as corrupt.
        for table in damaged { try db.execute(sql: "REINDEX \(table.name)") }
        guard !damaged.isEmpty else { return [] }
        let jobs = try String.fetchAll(
            db,
            sql: """
                DELETE FROM jobs WHERE NOT (\(ChecksummedTable.jobs.isRight))
                    OR sequence IN (SELECT job FROM job_items WHERE NOT (\(ChecksummedTable.jobItems.isRight)))
                RETURNING 'job ' || coalesce(id, '')
                """)
        try db.execute(sql: "DELETE FROM job_items WHERE NOT (\(ChecksummedTable.jobItems.isRight))")
        let origins = try String.fetchAll(
            db,
            sql:
                "DELETE FROM origins WHERE NOT (\(ChecksummedTable.origins.isRight)) RETURNING 'origin ' || coalesce(name, '')"
        )
        let policy = try String.fetchAll(
            db, sql: "DELETE FROM policy WHERE NOT (\(ChecksummedTable.policy.isRight)) RETURNING 'policy'")
        let deliveries = try String.fetchAll(
            db,
            sql: """
                DELETE FROM webhook_deliveries WHERE NOT (\(ChecksummedTable.webhookDeliveries.isRight))
                RETURNING 'event for the webhook ' || coalesce(webhook, '')
                """)
        guard try tablesWithDamagedRows(db).isEmpty else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "damaged rows cannot be deleted")
        }
        return jobs + origins + policy + deliveries
    }

    /// The tables with at least one damaged row.
    private static func tablesWithDamagedRows(_ db: Database) throws -> [ChecksummedTable] {
        try ChecksummedTable.all.filter { table in
            let sql = "SELECT EXISTS (SELECT 1 FROM \(table.name) WHERE NOT (\(table.isRight)))"
            return try Bool.fetchOne(db, sql: sql) ?? false
        }
    }
}
