package import CacheCore
import Foundation
import GRDB

/// The schedules of jobs, with optimistic concurrency control by revision numbers.
extension Catalog {
    /// All schedules, and the names of those that cannot be read.
    package func schedules() async throws(CacheError) -> (schedules: [StoredSchedule], damaged: [String]) {
        let secrets = secrets
        return try await read { db in
            var (schedules, damaged): ([StoredSchedule], [String]) = ([], [])
            for row in try Row.fetchAll(db, sql: "SELECT name, revision, sealed_schedule, run FROM schedules") {
                do {
                    let text = try secrets.open(row[2])
                    let run = try (row[3] as String?).map { try RowCoding.value(ScheduledRun.self, json: $0) }
                    schedules.append(
                        StoredSchedule(
                            schedule: try ScheduleText.schedule(row[0], text), run: run, revision: row[1]))
                } catch {
                    damaged.append(row[0])
                }
            }
            return (schedules, damaged)
        }
    }

    /// Inserts or replaces a schedule, and keeps its last run; returns its new revision. Throws `preconditionFailed` if the
    /// precondition does not hold.
    package func save(_ schedule: JobSchedule, if precondition: Precondition) async throws(CacheError) -> Int64 {
        let secrets = secrets
        return try await write { db in
            try Self.check(precondition, try Self.scheduleRevision(schedule.name, db))
            let revision = try Self.nextRevision(db)
            try db.execute(
                sql: """
                    INSERT INTO schedules (name, revision, sealed_schedule) VALUES (?, ?, ?)
                    ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, sealed_schedule = excluded.sealed_schedule
                    """,
                arguments: [schedule.name, revision, try secrets.seal(ScheduleText.text(of: schedule))])
            return revision
        }
    }

    /// Deletes a schedule. Throws `preconditionFailed` if the precondition does not hold.
    package func deleteSchedule(_ name: String, if precondition: Precondition) async throws(CacheError) {
        try await write { db in
            try Self.check(precondition, try Self.scheduleRevision(name, db))
            try db.execute(sql: "DELETE FROM schedules WHERE name = ?", arguments: [name])
        }
    }

    /// Records the last run of a schedule, if it still exists.
    package func save(_ run: ScheduledRun, of schedule: String) async throws(CacheError) {
        try await write { db in
            try db.execute(
                sql: "UPDATE schedules SET run = ? WHERE name = ?", arguments: [try RowCoding.json(run), schedule])
        }
    }

    private static func scheduleRevision(_ name: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT revision FROM schedules WHERE name = ?", arguments: [name])
    }
}

/// The stored form of a schedule: JSON, which is always sealed, because its URLs may be signed.
package enum ScheduleText {
    private struct Document: Codable {
        var `repeat`: String
        var at: String?
        var isEnabled: Bool
        /// Milliseconds.
        var deadline: Int64?
        var job: String
        var owner: String?
        var origins, prefixes: [String]?
        /// Milliseconds since 1970.
        var createdAt, begunAt: Int64
    }

    package static func text(of schedule: JobSchedule) throws(CacheError) -> String {
        let document = Document(
            repeat: schedule.repeat.text, at: schedule.repeat.time?.text, isEnabled: schedule.isEnabled,
            deadline: schedule.deadline?.wholeMilliseconds, job: schedule.job, owner: schedule.owner?.id,
            origins: schedule.owner?.limits.origins?.sorted(), prefixes: schedule.owner?.limits.prefixes,
            createdAt: schedule.createdAt.milliseconds, begunAt: schedule.begunAt.milliseconds)
        do {
            return try RowCoding.json(document)
        } catch {
            throw CacheError(.internal, "The schedule could not be encoded.", cause: error)
        }
    }

    /// Throws `storageCorrupt` for another form.
    package static func schedule(_ name: String, _ text: String) throws(CacheError) -> JobSchedule {
        let document = try RowCoding.value(Document.self, json: text)
        do throws(CacheError) {
            let time = try document.at.map { text throws(CacheError) in try LocalTime(text) }
            var schedule = JobSchedule(
                name: name, repeat: try JobRepeat(document.repeat, at: time), isEnabled: document.isEnabled,
                deadline: document.deadline.map { .milliseconds($0) }, job: document.job,
                owner: document.owner.map { id in
                    TokenOwner(
                        id: id,
                        limits: ContentLimits(origins: document.origins.map { Set($0) }, prefixes: document.prefixes))
                }, createdAt: Timestamp(milliseconds: document.createdAt))
            schedule.begunAt = Timestamp(milliseconds: document.begunAt)
            return schedule
        } catch {
            throw RowCoding.corrupt("a schedule")
        }
    }
}
