package import CacheCore
import GRDB

extension Catalog {
    /// Keeps a new job with all its items, unless the idempotency key was used before. Where it supersedes, the unfinished
    /// jobs of its queue end in the same commit.
    ///
    /// Throws `conflict` where the job's identifier is taken.
    package func insertJob(
        _ job: JobRecord, idempotency: IdempotencyKey? = nil
    ) async throws(CacheError) -> JobInsertion {
        let secrets = secrets
        return try await write { db in
            if let idempotency {
                if let earlier = try Self.use(of: idempotency, db) { return earlier }
                try db.execute(
                    sql: "INSERT INTO idempotency_keys (key, body_hash, job, created_at) VALUES (?, ?, ?, ?)",
                    arguments: [idempotency.key, idempotency.bodyHash, job.id, job.createdAt.milliseconds])
            }
            let superseded = try Self.supersede(by: job, at: job.createdAt, db)
            try db.execute(sql: JobRow.insertSQL, arguments: JobRow.arguments(job))
            try Self.writeItems(job.items, job: db.lastInsertedRowID, db, secrets)
            return .inserted(superseded: superseded)
        }
    }

    /// Writes a finished job that is begun again at `now`, with its items. Where it supersedes, the unfinished jobs of its
    /// queue end in the same commit; answers which.
    package func requeueJob(_ job: JobRecord, at now: Timestamp) async throws(CacheError) -> [String] {
        let secrets = secrets
        return try await write { db in
            guard let sequence = try Self.sequence(of: job.id, db) else { return [] }
            let superseded = try Self.supersede(by: job, at: now, db)
            try db.execute(sql: JobRow.updateSQL, arguments: JobRow.arguments(job))
            try Self.writeItems(job.items, job: sequence, db, secrets)
            return superseded
        }
    }

    /// Writes the job's own state; its items stay as they are. Answers false where it is not known.
    @discardableResult
    package func updateJob(_ job: JobRecord) async throws(CacheError) -> Bool {
        try await write { db in
            try db.execute(sql: JobRow.updateSQL, arguments: JobRow.arguments(job))
            return db.changesCount > 0
        }
    }

    /// Writes items of a job, in one transaction. Answers false where the job is not known.
    @discardableResult
    package func updateItems(_ items: [JobItemRecord], ofJob id: String) async throws(CacheError) -> Bool {
        let secrets = secrets
        return try await write { db in
            guard let job = try Self.sequence(of: id, db) else { return false }
            try Self.writeItems(items, job: job, db, secrets)
            return true
        }
    }

    /// A job with all its items.
    package func job(_ id: String) async throws(CacheError) -> JobRecord? {
        let secrets = secrets
        return try await read { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT * FROM jobs WHERE id = ?", arguments: [id]) else {
                return nil
            }
            return try JobRow.record(row, items: Self.items(ofJob: row["sequence"], db, secrets))
        }
    }

    /// Jobs that are queued or running, with all their items, oldest first.
    package func unfinishedJobs() async throws(CacheError) -> [JobRecord] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT * FROM jobs WHERE state IN ('queued', 'running') ORDER BY sequence")
            return try rows.map { try JobRow.record($0, items: Self.items(ofJob: $0["sequence"], db, secrets)) }
        }
    }

    /// How many jobs there are in each state; states that none is in are absent.
    package func jobCounts() async throws(CacheError) -> [JobState: Int] {
        try await read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT state, count(*) FROM jobs GROUP BY state")
            return try Self.counts(rows)
        }
    }

    /// Forgets jobs that finished before `time`, and idempotency keys that were given before it; answers how many jobs.
    @discardableResult
    package func pruneJobs(before time: Timestamp) async throws(CacheError) -> Int {
        try await write { db in
            try db.execute(
                sql: "DELETE FROM idempotency_keys WHERE created_at < ?", arguments: [time.milliseconds])
            try db.execute(sql: "DELETE FROM jobs WHERE finished_at < ?", arguments: [time.milliseconds])
            return db.changesCount
        }
    }

    /// Puts what ran when the last process ended back into the queue; before any job of this process runs.
    static func requeueRunningJobs(_ db: Database) throws {
        try db.execute(sql: "UPDATE jobs SET state = 'queued' WHERE state = 'running'")
        try db.execute(sql: "UPDATE job_items SET state = 'queued' WHERE state = 'running'")
    }

    static func counts(_ rows: [Row]) throws -> [JobState: Int] {
        var counts: [JobState: Int] = [:]
        for row in rows { counts[try RowCoding.choice(row[0], "a job's state")] = row[1] }
        return counts
    }

    static func sequence(of job: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT sequence FROM jobs WHERE id = ?", arguments: [job])
    }

    /// Ends the unfinished jobs of the queue of a job that supersedes; answers which.
    private static func supersede(by job: JobRecord, at now: Timestamp, _ db: Database) throws -> [String] {
        guard job.supersedes else { return [] }
        let rows = try Row.fetchAll(
            db,
            sql: "SELECT id, sequence FROM jobs WHERE queue = ? AND state IN ('queued', 'running') ORDER BY sequence",
            arguments: [job.queue])
        let error = RecordedError.superseded(by: job.id)
        for row in rows {
            let arguments: StatementArguments = [
                "code": error.code, "message": error.message, "now": now.milliseconds,
                "job": row["sequence"] as Int64,
            ]
            try db.execute(
                sql: """
                    UPDATE job_items SET state = 'cancelled', error_code = :code, error_message = :message
                    WHERE job = :job AND state IN ('queued', 'running')
                    """,
                arguments: arguments)
            try db.execute(
                sql: """
                    UPDATE jobs
                    SET state = 'cancelled', supersedes = 1, error_code = :code, error_message = :message,
                        finished_at = :now
                    WHERE sequence = :job
                    """,
                arguments: arguments)
        }
        return rows.map { $0["id"] }
    }

    private static func use(of key: IdempotencyKey, _ db: Database) throws -> JobInsertion? {
        let row = try Row.fetchOne(
            db, sql: "SELECT job, body_hash FROM idempotency_keys WHERE key = ?", arguments: [key.key])
        return row.map { .repeated(jobID: $0[0], isSameBody: $0[1] == key.bodyHash) }
    }

    private static func items(ofJob sequence: Int64, _ db: Database, _ secrets: SecretBox) throws -> [JobItemRecord] {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT * FROM job_items WHERE job = ? ORDER BY position", arguments: [sequence])
        var items: [JobItemRecord] = []
        while let row = try rows.next() { items.append(try JobRow.item(row, secrets: secrets)) }
        return items
    }

    private static func writeItems(
        _ items: [JobItemRecord], job: Int64, _ db: Database, _ secrets: SecretBox
    ) throws {
        for item in items {
            try db.cachedStatement(sql: JobRow.writeItemSQL)
                .execute(arguments: try JobRow.arguments(item, job: job, secrets: secrets))
        }
    }
}
