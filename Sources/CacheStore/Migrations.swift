import GRDB

/// How a catalog of any earlier version becomes one of this version: SQL text that is never changed once released.
enum Migrations {
    /// Name and text, in the order of use.
    static let all: [(name: String, sql: String)] = [("v1", v1), ("v2", v2), ("v3", v3)]

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for migration in all {
            migrator.registerMigration(migration.name) { try $0.execute(sql: migration.sql) }
        }
        return migrator
    }

    /// Instants are milliseconds since 1970, durations milliseconds, truths 0 or 1, lists JSON; `sealed` columns are
    /// AES-GCM boxes.
    private static let v1 = """
        CREATE TABLE meta (
            name TEXT PRIMARY KEY NOT NULL,
            value ANY NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE assets (
            id BLOB PRIMARY KEY NOT NULL CHECK (length(id) = 16),
            key TEXT NOT NULL UNIQUE,
            origin TEXT NOT NULL,
            sealed_url BLOB NOT NULL,
            clear_url TEXT NOT NULL,
            generation INTEGER NOT NULL,
            file_serial INTEGER UNIQUE,
            length INTEGER CHECK (length >= 0),
            content_type TEXT,
            content_type_from TEXT NOT NULL,
            entity_tag TEXT,
            last_modified TEXT,
            last_modified_is_strong INTEGER NOT NULL,
            accepts_ranges INTEGER,
            headers TEXT NOT NULL,
            received_at INTEGER NOT NULL,
            initial_age INTEGER NOT NULL,
            fresh_until INTEGER,
            is_storable INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            last_access_at INTEGER NOT NULL,
            hits INTEGER NOT NULL,
            is_pinned INTEGER NOT NULL,
            tags TEXT NOT NULL,
            ttl INTEGER,
            cached_bytes INTEGER NOT NULL DEFAULT 0 CHECK (cached_bytes >= 0)
        ) STRICT;
        CREATE INDEX assets_by_last_access ON assets (last_access_at, id);
        CREATE INDEX assets_by_cached_bytes ON assets (cached_bytes, id);
        CREATE INDEX assets_by_hits ON assets (hits, id);
        CREATE INDEX assets_by_created_at ON assets (created_at, id);
        CREATE INDEX assets_by_origin ON assets (origin, key);
        CREATE INDEX assets_by_url ON assets (clear_url);

        CREATE TABLE extents (
            file INTEGER NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
            start INTEGER NOT NULL CHECK (start >= 0),
            "end" INTEGER NOT NULL CHECK ("end" > start),
            PRIMARY KEY (file, start)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE jobs (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL,
            label TEXT,
            priority TEXT NOT NULL,
            max_bytes_per_second INTEGER,
            timeout INTEGER,
            deadline_at INTEGER,
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            finished_at INTEGER,
            error_code TEXT,
            error_message TEXT
        ) STRICT;
        CREATE INDEX jobs_by_state ON jobs (state, sequence);
        CREATE INDEX jobs_by_finished_at ON jobs (finished_at) WHERE finished_at IS NOT NULL;

        CREATE TABLE job_items (
            job INTEGER NOT NULL REFERENCES jobs (sequence) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            sealed_reference BLOB NOT NULL,
            ranges TEXT NOT NULL,
            state TEXT NOT NULL,
            asset BLOB,
            attempts INTEGER NOT NULL,
            bytes_total INTEGER,
            bytes_from_cache INTEGER NOT NULL,
            bytes_from_upstream INTEGER NOT NULL,
            error_code TEXT,
            error_message TEXT,
            PRIMARY KEY (job, position)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE idempotency_keys (
            key TEXT PRIMARY KEY NOT NULL,
            body_hash TEXT NOT NULL,
            job TEXT NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE origins (
            name TEXT PRIMARY KEY NOT NULL,
            revision INTEGER NOT NULL,
            sealed_settings BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE policy (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            revision INTEGER NOT NULL,
            settings TEXT NOT NULL
        ) STRICT;

        CREATE TABLE statistics_minutes (
            at INTEGER NOT NULL,
            origin TEXT NOT NULL,
            counters TEXT NOT NULL,
            PRIMARY KEY (at, origin)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE counter_totals (
            name TEXT PRIMARY KEY NOT NULL,
            counters TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Variants of an asset: the readers' fields they were chosen by, a sealed list.
    private static let v2 = """
        ALTER TABLE assets ADD COLUMN sealed_variant BLOB;
        """

    /// Queues of jobs, whose unfinished ones are looked for.
    private static let v3 = """
        ALTER TABLE jobs ADD COLUMN queue TEXT;
        CREATE INDEX jobs_by_queue ON jobs (queue, state, sequence) WHERE queue IS NOT NULL;
        """
}
