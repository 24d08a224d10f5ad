/// A table with a checksum of the columns in every row (`row_sum`), kept by triggers.
///
/// The text of the migration is derived from the columns. A later version that adds columns needs a migration of its
/// own.
struct ChecksummedTable {
    let name: String
    /// Columns of the primary key.
    let key: [String]
    /// Column names, in the order of the checksum.
    let columns: String

    /// Tables that are searched for damaged rows at the start. Damaged rows of `assets` are detected by reads.
    static let all = [jobs, jobItems, origins, policy, webhookDeliveries]

    /// The tables of ``all`` as the migrations v9 and v10 knew them.
    static let untilV11 = [jobsUntilV11, jobItems, origins, policy]

    /// Created by the migration v8 itself, so it is not in `all`.
    static let assets = ChecksummedTable(
        name: "assets", key: ["id"],
        columns: """
            id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from, \
            entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age, \
            fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify
            """)

    static let jobs = ChecksummedTable(
        name: "jobs", key: ["sequence"], columns: jobsUntilV15.columns + ", plan")

    static let jobsUntilV15 = ChecksummedTable(
        name: "jobs", key: ["sequence"], columns: jobsUntilV11.columns + ", owner, owner_limits")

    static let jobsUntilV11 = ChecksummedTable(
        name: "jobs", key: ["sequence"],
        columns: """
            sequence, id, state, label, priority, max_bytes_per_second, timeout, deadline_at, created_at, started_at, \
            finished_at, error_code, error_message, queue, supersedes
            """)

    static let jobItems = ChecksummedTable(
        name: "job_items", key: ["job", "position"],
        columns: """
            job, position, sealed_reference, ranges, state, asset, attempts, bytes_total, bytes_from_cache, \
            bytes_from_upstream, error_code, error_message
            """)

    static let origins = ChecksummedTable(name: "origins", key: ["name"], columns: "name, revision, sealed_settings")

    static let policy = ChecksummedTable(name: "policy", key: ["only"], columns: "only, revision, settings")

    static let webhookDeliveries = ChecksummedTable(
        name: "webhook_deliveries", key: ["sequence"],
        columns: "sequence, webhook, message, kind, sealed_payload, created_at, attempts, next_attempt_at")

    /// SQL expression: whether the checksum of a row matches.
    var isRight: String { "row_sum IS larder_sum(\(columns))" }

    /// SQL statement that recomputes the checksum.
    private var sum: String { "UPDATE \(name) SET row_sum = larder_sum(\(columns))" }

    /// SQL condition that selects the row of a trigger.
    private var isNew: String { key.map { "\($0) = NEW.\($0)" }.joined(separator: " AND ") }

    /// Adds the checksum column, computes it for existing rows, and creates the triggers that keep it.
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

    /// Extends the checksum from the columns of an earlier version to those of this one. Damaged rows keep a mismatch.
    func migration(from earlier: ChecksummedTable) -> String {
        """
        \(sum) WHERE \(earlier.isRight);
        DROP TRIGGER \(name)_inserted;
        CREATE TRIGGER \(name)_inserted AFTER INSERT ON \(name) BEGIN
            \(sum) WHERE \(isNew);
        END;
        \(keepingDamage)
        """
    }

    /// Replaces the update trigger: a damaged row gets no new checksum, so an update cannot hide the damage.
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
