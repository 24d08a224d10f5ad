package import CacheCore
import GRDB

/// Prefetch jobs: the tables `jobs`, `job_items` and `idempotency_keys`.
extension Catalog {
    /// Inserts a new job with all its items, unless the idempotency key was used before. If the job supersedes, the
    /// unfinished jobs of its queue are cancelled in the same transaction.
    ///
    /// Throws `conflict` if the job's identifier already exists.
    package func insertJob(
        _ job: JobRecord, idempotency: IdempotencyKey? = nil
    ) async throws(CacheError) -> JobInsertion {
        let items = try rows(of: job.items)
        return try await write { db in
            if let idempotency {
                if let earlier = try Self.use(of: idempotency, db) { return earlier }
                try db.execute(
                    sql: "INSERT INTO idempotency_keys (key, body_hash, job, created_at) VALUES (?, ?, ?, ?)",
                    arguments: [idempotency.key, idempotency.bodyHash, job.id, job.createdAt.milliseconds])
            }
            let superseded = try Self.supersede(by: job, at: job.createdAt, db)
            try db.execute(sql: JobRow.insertSQL, arguments: try JobRow.columns.arguments(of: job, self.secrets))
            try Self.writeItems(items, job: db.lastInsertedRowID, db)
            return .inserted(superseded: superseded)
        }
    }

    /// Writes a finished job that is restarted at `now`, with its items. If the job supersedes, the unfinished jobs of
    /// its queue are cancelled in the same transaction; their identifiers are returned.
    package func requeueJob(_ job: JobRecord, at now: Timestamp) async throws(CacheError) -> [String] {
        let items = try rows(of: job.items)
        return try await write { db in
            guard let sequence = try Self.sequence(of: job.id, db) else { return [] }
            let superseded = try Self.supersede(by: job, at: now, db)
            try db.execute(sql: JobRow.updateSQL, arguments: try JobRow.columns.arguments(of: job, self.secrets))
            try Self.writeItems(items, job: sequence, db)
            return superseded
        }
    }

    /// Writes the job's own state; its items are unchanged. Returns false if the job is unknown.
    @discardableResult
    package func updateJob(_ job: JobRecord) async throws(CacheError) -> Bool {
        try await write { db in
            try db.execute(sql: JobRow.updateSQL, arguments: try JobRow.columns.arguments(of: job, self.secrets))
            return db.changesCount > 0
        }
    }

    /// Writes changed items of jobs and the state of each job, in one transaction. Unknown jobs are omitted.
    package func update(_ changes: [PrefetchSchedule.Change]) async throws(CacheError) {
        let changes = try changes.map { change throws(CacheError) in
            (job: change.job, items: try rows(of: change.items))
        }
        try await write { db in
            for (job, items) in changes {
                guard let sequence = try Self.sequence(of: job.id, db) else { continue }
                try Self.writeItems(items, job: sequence, db)
                try db.cachedStatement(sql: JobRow.updateSQL).execute(
                    arguments: try JobRow.columns.arguments(of: job, self.secrets))
            }
        }
    }

    /// Returns a job with all its items; nil if the job is unknown.
    package func job(_ id: String) async throws(CacheError) -> JobRecord? {
        let secrets = secrets
        return try await read { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT * FROM jobs WHERE id = ?", arguments: [id]) else {
                return nil
            }
            var job = try JobRow.record(row, items: Self.items(ofJob: row["sequence"], db, secrets), secrets: secrets)
            job.concludeItems()
            return job
        }
    }

    /// Returns the unfinished jobs with all their items, oldest job first.
    package func unfinishedJobs() async throws(CacheError) -> [JobRecord] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT * FROM jobs WHERE state IN (\(Self.unfinishedStates)) ORDER BY sequence")
            return try rows.map {
                try JobRow.record($0, items: Self.items(ofJob: $0["sequence"], db, secrets), secrets: secrets)
            }
        }
    }

    /// Returns the jobs with items that the catalog may not have, finished or not.
    package func spooledJobs() async throws(CacheError) -> [String] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT * FROM jobs WHERE plan LIKE '%\"spooledItems\"%'")
            return try rows.compactMap { row in
                let job = try JobRow.record(row, secrets: secrets)
                return job.spooledItems == nil ? nil : job.id
            }
        }
    }

    /// Writes further items of a job, in one transaction.
    package func append(_ items: [JobItemRecord], to job: String) async throws(CacheError) {
        let rows = try rows(of: items)
        try await write { db in
            guard let sequence = try Self.sequence(of: job, db) else { return }
            try Self.writeItems(rows, job: sequence, db)
        }
    }

    /// The states of unfinished jobs, as an SQL list.
    private static let unfinishedStates = JobState.ofJobs.filter { !$0.isFinished }.map { "'\($0.rawValue)'" }
        .joined(separator: ", ")

    /// Returns the number of jobs per state. States without jobs are absent.
    package func jobCounts() async throws(CacheError) -> [JobState: Int] {
        try await read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT state, count(*) FROM jobs GROUP BY state")
            return try Self.counts(rows)
        }
    }

    /// Deletes jobs that finished before `time` and idempotency keys created before it; returns the number of deleted
    /// jobs.
    @discardableResult
    package func pruneJobs(before time: Timestamp) async throws(CacheError) -> Int {
        try await write { db in
            try db.execute(
                sql: "DELETE FROM idempotency_keys WHERE created_at < ?", arguments: [time.milliseconds])
            try db.execute(sql: "DELETE FROM jobs WHERE finished_at < ?", arguments: [time.milliseconds])
            return db.changesCount
        }
    }

    /// Requeues the jobs and items that were running when the last process ended. Must run before this process starts a
    /// job.
    static func requeueRunningJobs(_ db: Database) throws {
        try db.execute(sql: "UPDATE jobs SET state = 'queued' WHERE state = 'running'")
        try db.execute(sql: "UPDATE job_items SET state = 'queued' WHERE state = 'running'")
    }

    /// Decodes rows of a state and a count.
    static func counts(_ rows: [Row]) throws -> [JobState: Int] {
        var counts: [JobState: Int] = [:]
        for row in rows { counts[try RowCoding.choice(row[0], "a job's state")] = row[1] }
        return counts
    }

    /// The row number of a job, which its items refer to; nil if the job is unknown.
    static func sequence(of job: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT sequence FROM jobs WHERE id = ?", arguments: [job])
    }

    /// Cancels the unfinished jobs of the queue if the job supersedes; returns their identifiers. Their items end with
    /// them (`JobRecord.concludeItems`).
    private static func supersede(by job: JobRecord, at now: Timestamp, _ db: Database) throws -> [String] {
        guard job.supersedes else { return [] }
        let rows = try Row.fetchAll(
            db,
            sql: "SELECT id, sequence FROM jobs WHERE queue = ? AND state IN (\(unfinishedStates)) ORDER BY sequence",
            arguments: [job.queue])
        let error = RecordedError.superseded(by: job.id)
        for row in rows {
            let arguments: StatementArguments = [
                "code": error.code, "message": error.message, "now": now.milliseconds,
                "job": row["sequence"] as Int64,
            ]
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

    /// The result of an earlier insertion with the idempotency key; nil if the key is new.
    package func insertion(with key: IdempotencyKey) async throws(CacheError) -> JobInsertion? {
        try await read { try Self.use(of: key, $0) }
    }

    /// The earlier use of an idempotency key; nil if the key is new.
    private static func use(of key: IdempotencyKey, _ db: Database) throws -> JobInsertion? {
        let row = try Row.fetchOne(
            db, sql: "SELECT job, body_hash FROM idempotency_keys WHERE key = ?", arguments: [key.key])
        return row.map { .repeated(jobID: $0[0], isSameBody: $0[1] == key.bodyHash) }
    }

    /// Reads all items of a job, ordered by position.
    private static func items(ofJob sequence: Int64, _ db: Database, _ secrets: SecretBox) throws -> [JobItemRecord] {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT * FROM job_items WHERE job = ? ORDER BY position", arguments: [sequence])
        var items: [JobItemRecord] = []
        while let row = try rows.next() { items.append(try JobRow.item(row, secrets: secrets)) }
        return items
    }

    /// The rows of items. They are encoded and sealed before a transaction, so that it is short.
    private func rows(of items: [JobItemRecord]) throws(CacheError) -> [StatementArguments] {
        do { return try items.map { try JobRow.itemColumns.arguments(of: $0, secrets) } } catch { throw failure(error) }
    }

    /// Inserts or replaces items of a job.
    private static func writeItems(_ rows: [StatementArguments], job: Int64, _ db: Database) throws {
        let statement = try db.cachedStatement(sql: JobRow.writeItemSQL)
        for row in rows { try statement.execute(arguments: row + ["job": job]) }
    }
}
