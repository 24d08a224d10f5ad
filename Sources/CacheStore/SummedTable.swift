/// A table whose rows carry a checksum of their columns, kept by triggers; the assets' is older, and has its own text.
///
/// The text of the migration follows from the columns: a later version that adds some makes a migration of its own.
struct SummedTable {
    let name: String
    let key: [String]
    /// In the order of the sum.
    let columns: String

    static let all = [jobs, jobItems, origins, policy]

    static let jobs = SummedTable(
        name: "jobs", key: ["sequence"],
        columns: """
            sequence, id, state, label, priority, max_bytes_per_second, timeout, deadline_at, created_at, started_at, \
            finished_at, error_code, error_message, queue, supersedes
            """)

    static let jobItems = SummedTable(
        name: "job_items", key: ["job", "position"],
        columns: """
            job, position, sealed_reference, ranges, state, asset, attempts, bytes_total, bytes_from_cache, \
            bytes_from_upstream, error_code, error_message
            """)

    static let origins = SummedTable(name: "origins", key: ["name"], columns: "name, revision, sealed_settings")

    static let policy = SummedTable(name: "policy", key: ["only"], columns: "only, revision, settings")

    /// Whether a row is what was written, as an expression.
    var isRight: String { "row_sum IS larder_sum(\(columns))" }

    /// Gives the rows their sums, and keeps them.
    var migration: String {
        let isNew = key.map { "\($0) = NEW.\($0)" }.joined(separator: " AND ")
        let sum = "UPDATE \(name) SET row_sum = larder_sum(\(columns))"
        return """
            ALTER TABLE \(name) ADD COLUMN row_sum INTEGER;
            \(sum);
            CREATE TRIGGER \(name)_inserted AFTER INSERT ON \(name) BEGIN
                \(sum) WHERE \(isNew);
            END;
            CREATE TRIGGER \(name)_updated AFTER UPDATE OF \(columns) ON \(name) BEGIN
                \(sum) WHERE \(isNew);
            END;

            """
    }
}
