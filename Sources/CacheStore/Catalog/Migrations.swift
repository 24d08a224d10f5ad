import GRDB

/// Migrations of the catalog from any earlier version. The SQL text of a released migration never changes.
enum Migrations {
    /// Name and SQL text, in order of application.
    static let all: [(name: String, sql: String)] = [
        ("v1", v1), ("v2", v2), ("v3", v3), ("v4", v4), ("v5", v5), ("v6", v6), ("v7", v7), ("v8", v8),
        ("v9", v9), ("v10", v10), ("v11", v11), ("v12", v12), ("v13", v13), ("v14", v14), ("v15", v15),
        ("v16", v16), ("v17", v17), ("v18", v18),
        ("v19", v19), ("v20", UsageTable.migration),
    ]

    /// A GRDB migrator with all migrations.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for migration in all {
            migrator.registerMigration(migration.name) { try $0.execute(sql: migration.sql) }
        }
        return migrator
    }

    /// The first schema. Timestamps are milliseconds since 1970, durations are milliseconds, Booleans are 0 or 1, lists
    /// are JSON. `sealed` columns are AES-GCM boxes.
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

    /// Variants (`Vary`, RFC 9111 §4.1): the request fields that selected the variant, as a sealed list.
    private static let v2 = """
        ALTER TABLE assets ADD COLUMN sealed_variant BLOB;
        """

    /// Queues of jobs, with an index for their unfinished jobs.
    private static let v3 = """
        ALTER TABLE jobs ADD COLUMN queue TEXT;
        CREATE INDEX jobs_by_queue ON jobs (queue, state, sequence) WHERE queue IS NOT NULL;
        """

    /// Jobs that cancel the unfinished jobs of their queue.
    private static let v4 = """
        ALTER TABLE jobs ADD COLUMN supersedes INTEGER NOT NULL DEFAULT 0;
        """

    /// State of the eviction policy's segments; `meta` records its layout. Timestamps in this table are seconds since
    /// 1970.
    private static let v5 = """
        CREATE TABLE segments (
            asset BLOB NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            is_proven INTEGER NOT NULL,
            counted_reads INTEGER NOT NULL,
            priority REAL,
            arrived_at INTEGER NOT NULL,
            read_at INTEGER NOT NULL,
            reads INTEGER NOT NULL,
            PRIMARY KEY (asset, position)
        ) STRICT, WITHOUT ROWID;
        """

    /// The eviction log. Ranges are a JSON list of pairs.
    private static let v6 = """
        CREATE TABLE evictions (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,
            reason TEXT NOT NULL,
            asset BLOB NOT NULL,
            key TEXT NOT NULL,
            origin TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            ranges TEXT NOT NULL
        ) STRICT;
        CREATE INDEX evictions_by_at ON evictions (at);
        """

    /// Expiry of pins.
    private static let v7 = """
        ALTER TABLE assets ADD COLUMN pinned_until INTEGER;
        CREATE INDEX assets_by_pinned_until ON assets (pinned_until) WHERE pinned_until IS NOT NULL;
        """

    /// Checksums of file blocks, in rows of `ChecksumRow`; `unsummed` lists the files written before. Checksums of the
    /// rows of `assets`, kept by triggers. The verification mode of an asset, and the last run that verified it.
    private static let v8 = """
        CREATE TABLE sums (
            file INTEGER NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
            row INTEGER NOT NULL CHECK (row >= 0),
            sums BLOB NOT NULL,
            PRIMARY KEY (file, row)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE unsummed (
            file INTEGER PRIMARY KEY NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE
        ) STRICT;
        INSERT INTO unsummed SELECT file_serial FROM assets WHERE cached_bytes > 0 AND file_serial IS NOT NULL;

        ALTER TABLE assets ADD COLUMN verify TEXT;
        ALTER TABLE assets ADD COLUMN checked_run INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE assets ADD COLUMN row_sum INTEGER;
        UPDATE assets SET row_sum = larder_sum(
            id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from,
            entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age,
            fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify);
        CREATE TRIGGER assets_inserted AFTER INSERT ON assets BEGIN
            UPDATE assets SET row_sum = larder_sum(
                id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from,
                entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age,
                fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify)
            WHERE id = NEW.id;
        END;
        CREATE TRIGGER assets_updated AFTER UPDATE OF
            id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from,
            entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age,
            fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify ON assets
        BEGIN
            UPDATE assets SET row_sum = larder_sum(
                id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from,
                entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age,
                fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify)
            WHERE id = NEW.id;
        END;
        """

    /// Checksums of the rows of `jobs`, `job_items`, `origins` and `policy`.
    private static let v9 = ChecksummedTable.untilV11.map(\.migration).joined()

    /// Replaces the triggers: an update of a damaged row keeps the mismatch instead of hiding it behind a new checksum.
    private static let v10 = ([ChecksummedTable.assets] + ChecksummedTable.untilV11).map(\.keepingDamage).joined()

    /// From this version on, settings are stored in the form of the API. Rows of earlier versions are converted when
    /// they are read; the migration only prevents earlier versions from opening the catalog.
    private static let v11 = ""

    /// The token that made a job, and its limits as JSON.
    private static let v12 = """
        ALTER TABLE jobs ADD COLUMN owner TEXT;
        ALTER TABLE jobs ADD COLUMN owner_limits TEXT;
        \(ChecksummedTable.jobsUntilV15.migration(from: ChecksummedTable.jobsUntilV11))
        """

    /// From this version on, items of jobs can have the state `waiting`, with their wait in the sealed reference. Earlier
    /// versions cannot read them; the migration only prevents earlier versions from opening the catalog.
    private static let v13 = ""

    /// Purges that delete their assets later, and the assets that they have selected. The row of a removed asset takes
    /// its mark with it.
    private static let v14 = """
        CREATE TABLE purges (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            owner TEXT,
            owner_limits TEXT,
            assets INTEGER NOT NULL,
            pinned INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            marked INTEGER NOT NULL,
            marked_bytes INTEGER NOT NULL,
            expires_at INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE purged (
            asset BLOB PRIMARY KEY NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
            purge INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Sealed keys of encrypted files, and the nonces of their ranges.
    private static let v15 = """
        CREATE TABLE file_keys (
            file INTEGER PRIMARY KEY NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
            master_key TEXT NOT NULL,
            sealed BLOB NOT NULL
        ) STRICT;
        CREATE INDEX file_keys_by_master_key ON file_keys (master_key);

        CREATE TABLE nonces (
            file INTEGER NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
            start INTEGER NOT NULL,
            "end" INTEGER NOT NULL CHECK ("end" > start),
            nonce INTEGER NOT NULL,
            PRIMARY KEY (file, start)
        ) STRICT, WITHOUT ROWID;
        """

    /// The revision of a job's terms, and its times, as JSON. From this version on, jobs can have the state `paused`.
    private static let v16 = """
        ALTER TABLE jobs ADD COLUMN plan TEXT;
        \(ChecksummedTable.jobs.migration(from: ChecksummedTable.jobsUntilV15))
        """

    /// Events that wait for their delivery to webhooks, with their documents sealed.
    private static let v17 = """
        CREATE TABLE webhook_deliveries (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,
            webhook TEXT NOT NULL,
            message TEXT NOT NULL,
            kind TEXT NOT NULL,
            sealed_payload BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            next_attempt_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX webhook_deliveries_by_next_attempt ON webhook_deliveries (webhook, next_attempt_at, sequence);
        \(ChecksummedTable.webhookDeliveries.migration)
        \(ChecksummedTable.webhookDeliveries.keepingDamage)
        """

    /// The schedules of jobs. `run` is JSON.
    private static let v18 = """
        CREATE TABLE schedules (
            name TEXT PRIMARY KEY NOT NULL,
            revision INTEGER NOT NULL,
            sealed_schedule BLOB NOT NULL,
            run TEXT
        ) STRICT;
        """

    /// Tokens of the API.
    private static let v19 = """
        CREATE TABLE tokens (
            id TEXT PRIMARY KEY NOT NULL,
            revision INTEGER NOT NULL,
            document TEXT NOT NULL
        ) STRICT;
        """
}
