import CacheCore
import GRDB

/// A row is not what was written.
struct DamagedRow: Error {
    let asset: AssetID

    static func error(_ asset: AssetID) -> CacheError {
        CacheError(
            .storageCorrupt, "The catalog's row of the asset \(asset) is damaged.", cause: DamagedRow(asset: asset))
    }
}

extension Catalog {
    /// Takes out the rows of jobs, origins and policy that are not what was written, before anything is made of them; a job goes
    /// with all its items. Answers what they were.
    static func dropDamagedRows(_ db: Database) throws -> [String] {
        let damaged = try tablesWithDamagedRows(db)
        // An index may tell of a row what it was before, and SQLite would take the whole catalog for damaged.
        for table in damaged { try db.execute(sql: "REINDEX \(table.name)") }
        guard !damaged.isEmpty else { return [] }
        let jobs = try String.fetchAll(
            db,
            sql: """
                DELETE FROM jobs WHERE NOT (\(SummedTable.jobs.isRight))
                    OR sequence IN (SELECT job FROM job_items WHERE NOT (\(SummedTable.jobItems.isRight)))
                RETURNING 'job ' || coalesce(id, '')
                """)
        try db.execute(sql: "DELETE FROM job_items WHERE NOT (\(SummedTable.jobItems.isRight))")
        let origins = try String.fetchAll(
            db,
            sql:
                "DELETE FROM origins WHERE NOT (\(SummedTable.origins.isRight)) RETURNING 'origin ' || coalesce(name, '')"
        )
        let policy = try String.fetchAll(
            db, sql: "DELETE FROM policy WHERE NOT (\(SummedTable.policy.isRight)) RETURNING 'policy'")
        guard try tablesWithDamagedRows(db).isEmpty else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "rows that are damaged cannot be taken out")
        }
        return jobs + origins + policy
    }

    private static func tablesWithDamagedRows(_ db: Database) throws -> [SummedTable] {
        try SummedTable.all.filter { table in
            let sql = "SELECT EXISTS (SELECT 1 FROM \(table.name) WHERE NOT (\(table.isRight)))"
            return try Bool.fetchOne(db, sql: sql) ?? false
        }
    }
}
