package import CacheCore
import GRDB

/// Lists of jobs and of job items, in pages.
extension Catalog {
    /// Returns the next page of the job list, newest job first. The page size is limited to 1…1,000. Throws
    /// `invalidField("cursor")` if the cursor does not belong to this list.
    package func jobPage(_ query: JobQuery) async throws(CacheError) -> JobPage {
        let limit = min(max(query.limit, 1), 1000)
        let end = try query.cursor.map { text throws(CacheError) in try PageCursor(text, list: "jobs").value }
        return try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM jobs WHERE sequence < :end AND \(Self.jobConditions)
                    ORDER BY sequence DESC LIMIT :limit
                    """,
                arguments: Self.arguments(query) + ["end": end ?? Int64.max, "limit": limit + 1])
            let jobs = rows.prefix(limit)
            let next = rows.count > limit ? jobs.last.map { PageCursor(list: "jobs", value: $0["sequence"]).text } : nil
            return JobPage(items: try jobs.map { try Self.snapshot($0, db, self.secrets) }, nextCursor: next)
        }
    }

    /// Returns the number of jobs on all pages of a list.
    package func jobCount(_ query: JobQuery) async throws(CacheError) -> Int {
        try await read { db in
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM jobs WHERE \(Self.jobConditions)", arguments: Self.arguments(query))
                ?? 0
        }
    }

    /// SQL conditions of a job list.
    private static let jobConditions = """
        (:state IS NULL OR state = :state) AND (:label IS NULL OR label = :label)
            AND (:queue IS NULL OR queue = :queue)
        """

    private static func arguments(_ query: JobQuery) -> StatementArguments {
        ["state": query.state?.rawValue, "label": query.label, "queue": query.queue]
    }

    /// Returns the list entry of one job; nil if the job is unknown.
    package func jobSnapshot(_ id: String) async throws(CacheError) -> JobSnapshot? {
        try await read { db in
            let row = try Row.fetchOne(db, sql: "SELECT * FROM jobs WHERE id = ?", arguments: [id])
            return try row.map { try Self.snapshot($0, db, self.secrets) }
        }
    }

    /// Returns one page of a job's items, ordered by position; nil if the job is unknown. The page size is limited to
    /// 1…1,000. Throws `invalidField("cursor")` if the cursor does not belong to this list.
    package func jobItems(
        _ id: String, limit: Int = 100, cursor: String? = nil
    ) async throws(CacheError) -> JobItemPage? {
        let page = try JobItemPage.Place(of: id, limit: limit, cursor: cursor)
        let secrets = secrets
        return try await read { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT * FROM jobs WHERE id = ?", arguments: [id]) else {
                return nil
            }
            let sequence: Int64 = row["sequence"]
            let rows = try Row.fetchAll(
                db, sql: "SELECT * FROM job_items WHERE job = ? AND position > ? ORDER BY position LIMIT ?",
                arguments: [sequence, page.last, page.limit + 1])
            var job = try JobRow.record(
                row, items: rows.map { try JobRow.item($0, secrets: secrets) }, secrets: secrets)
            job.concludeItems()
            return JobItemPage(job.items, at: page)
        }
    }

    /// Sums up the items of a job's row.
    private static func snapshot(_ row: Row, _ db: Database, _ secrets: SecretBox) throws -> JobSnapshot {
        let job: Int64 = row["sequence"]
        let states = try Row.fetchAll(
            db, sql: "SELECT state, count(*) FROM job_items WHERE job = ? GROUP BY state", arguments: [job])
        let sums = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*) - count(bytes_total), coalesce(sum(bytes_total), 0), coalesce(sum(bytes_from_cache), 0),
                    coalesce(sum(bytes_from_upstream), 0)
                FROM job_items WHERE job = ?
                """,
            arguments: [job])
        guard let sums else { throw RowCoding.corrupt("a job") }
        let record = try JobRow.record(row, secrets: secrets)
        var tally = JobTally(
            counts: try counts(states), itemsUnknown: sums[0], measuredBytes: sums[1], bytesFromCache: sums[2],
            bytesFromUpstream: sums[3])
        // The other items are in the spool file of the job.
        if let count = record.spooledItems { tally.addUnknown(count - tally.itemsTotal) }
        if record.state.isFinished {
            for state in JobState.allCases where !state.isFinished && tally[state] > 0 {
                tally.move(tally[state], from: state, to: record.state)
            }
        }
        return JobSnapshot(
            record: record, tally: tally, version: (record.finishedAt ?? record.createdAt).milliseconds)
    }
}
