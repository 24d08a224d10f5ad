/// A table whose rows carry a checksum of their columns, kept by triggers.
///
/// The text of the migration follows from the columns: a later version that adds some makes a migration of its own.
struct SummedTable {
    let name: String
    let key: [String]
    /// In the order of the sum.
    let columns: String

    /// Those whose damaged rows a start takes out; an asset's is found when it is read.
    static let all = [jobs, jobItems, origins, policy]

    static let assets = SummedTable(
        name: "assets", key: ["id"],
        columns: """
            id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from, \
            entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age, \
            fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify
            """)

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

    private var sum: String { "UPDATE \(name) SET row_sum = larder_sum(\(columns))" }

    private var isNew: String { key.map { "\($0) = NEW.\($0)" }.joined(separator: " AND ") }

    /// Gives the rows their sums, and keeps them.
    var migration: String {
        """
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

    /// A row that is not what was written stays so whatever of it is changed: no sum is made of what is damaged.
    var keepingDamage: String {
        let old = columns.split(separator: ", ").map { "OLD.\($0)" }.joined(separator: ", ")
        return """
            DROP TRIGGER \(name)_updated;
            CREATE TRIGGER \(name)_updated AFTER UPDATE OF \(columns) ON \(name)
            WHEN OLD.row_sum IS larder_sum(\(old)) BEGIN
                \(sum) WHERE \(isNew);
            END;

            """
    }
}
