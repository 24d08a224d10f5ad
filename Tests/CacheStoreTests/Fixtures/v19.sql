BEGIN TRANSACTION;
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
        , sealed_variant BLOB, pinned_until INTEGER, verify TEXT, checked_run INTEGER NOT NULL DEFAULT 0, row_sum INTEGER) STRICT;
INSERT INTO "assets" VALUES(X'01010101010101010101010101010101','/o/media/1.mp4','media',X'000000000000000000001F42E7190CA2EB2086092BE1EDD8D7FDDE17D73A5F56BBFA1B7BF90A3DC441AF737F0F6FA73A20E34147B3325D','https://up.test/1.mp4',1,12884901889,1000,'video/mp4','header','"x"','Sat, 21 Nov 2026 08:00:00 GMT',1,1,'[["Cache-Control","max-age=5"]]',1780000000000,0,1780000005000,1,1780000000000,1780000001000,1,1,'["film","2026"]',60000,1000,NULL,1990000000000,NULL,0,1613588525);
INSERT INTO "assets" VALUES(X'02020202020202020202020202020202','/o/media/2.mp4','media',X'000000000000000000001F43D136594B2A497358A7FBAF44B9A550B05E2FF9B90ACF5D2343E1F852291635C8638D061E1C3022992E1465','https://up.test/2.mp4',1,12884901890,600000,'video/mp4','header','"x"','Sat, 21 Nov 2026 08:00:00 GMT',1,1,'[["Cache-Control","max-age=5"]]',1780000000000,0,1780000005000,1,1780000000000,1780000001000,2,0,'[]',NULL,400000,NULL,NULL,'always',0,3272154710);
INSERT INTO "assets" VALUES(X'03030303030303030303030303030303','/o/media/3.mp4','media',X'000000000000000000001F44F6990B3DAFBA16881D85A38482FB932187FE6CCAA1FE41E6E2C41506486885AB8AAAA47BD683F9642AB079','https://up.test/3.mp4',1,NULL,NULL,'video/mp4','header','"x"','Sat, 21 Nov 2026 08:00:00 GMT',1,1,'[["Cache-Control","max-age=5"]]',1780000000000,0,1780000005000,1,1780000000000,1780000001000,3,0,'[]',NULL,0,NULL,NULL,NULL,0,64414997);
INSERT INTO "assets" VALUES(X'04040404040404040404040404040404','/o/media/4.mp4','media',X'000000000000000000001F46D0A836F4D87721FBCA2B81D8B1133E5166AD45017FC2A30CA38F4C9D13E52CD05D554FD15BB94F82ACD865','https://up.test/4.mp4',1,12884901892,10,'video/mp4','header','"x"','Sat, 21 Nov 2026 08:00:00 GMT',1,1,'[["Cache-Control","max-age=5"]]',1780000000000,0,1780000005000,1,1780000000000,1780000001000,4,0,'[]',NULL,10,X'000000000000000000001F45CE4AE66C4A39221FFF90F96D50CB6B9E9CDE6DFF356D06A6065FA4F47356168AA25A5FE740ABFC0ACDAA',NULL,NULL,0,766577119);
CREATE TABLE counter_totals (
            name TEXT PRIMARY KEY NOT NULL,
            counters TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
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
INSERT INTO "evictions" VALUES(1,1780000000000,'capacity',X'09090909090909090909090909090909','/o/media/9.mp4','media',100,'[[0,100]]');
CREATE TABLE extents (
            file INTEGER NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
            start INTEGER NOT NULL CHECK (start >= 0),
            "end" INTEGER NOT NULL CHECK ("end" > start),
            PRIMARY KEY (file, start)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "extents" VALUES(12884901889,0,1000);
INSERT INTO "extents" VALUES(12884901890,0,300000);
INSERT INTO "extents" VALUES(12884901890,400000,500000);
INSERT INTO "extents" VALUES(12884901892,0,10);
CREATE TABLE file_keys (
    file INTEGER PRIMARY KEY NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
    master_key TEXT NOT NULL,
    sealed BLOB NOT NULL
) STRICT;
CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
INSERT INTO "grdb_migrations" VALUES('v1');
INSERT INTO "grdb_migrations" VALUES('v2');
INSERT INTO "grdb_migrations" VALUES('v3');
INSERT INTO "grdb_migrations" VALUES('v4');
INSERT INTO "grdb_migrations" VALUES('v5');
INSERT INTO "grdb_migrations" VALUES('v6');
INSERT INTO "grdb_migrations" VALUES('v7');
INSERT INTO "grdb_migrations" VALUES('v8');
INSERT INTO "grdb_migrations" VALUES('v9');
INSERT INTO "grdb_migrations" VALUES('v10');
INSERT INTO "grdb_migrations" VALUES('v11');
INSERT INTO "grdb_migrations" VALUES('v12');
INSERT INTO "grdb_migrations" VALUES('v13');
INSERT INTO "grdb_migrations" VALUES('v14');
INSERT INTO "grdb_migrations" VALUES('v15');
INSERT INTO "grdb_migrations" VALUES('v16');
INSERT INTO "grdb_migrations" VALUES('v17');
INSERT INTO "grdb_migrations" VALUES('v18');
INSERT INTO "grdb_migrations" VALUES('v19');
CREATE TABLE idempotency_keys (
            key TEXT PRIMARY KEY NOT NULL,
            body_hash TEXT NOT NULL,
            job TEXT NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
INSERT INTO "idempotency_keys" VALUES('key-1','hash','job-1',1780000000000);
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
            error_message TEXT, row_sum INTEGER,
            PRIMARY KEY (job, position)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "job_items" VALUES(1,0,X'000000000000000000001F47ED2393D9736419C6DC464C10A85A0DBF023B343AEEBD625413B8219974277EDD4F63B9A1EA6A46AEB27F5C7EF094BD5192','["bytes=0-9"]','succeeded',X'01010101010101010101010101010101',1,10,4,6,NULL,NULL,3786737487);
INSERT INTO "job_items" VALUES(1,1,X'000000000000000000001F488D16DD105A2F6CEE512EBADEE40FDDAC1A5C28C5E49803BA4F2B294112ED63C3BBE1E84699C91CE2E820B65364B0221732','["bytes=0-9"]','succeeded',X'02020202020202020202020202020202',1,10,4,6,NULL,NULL,2762993880);
INSERT INTO "job_items" VALUES(2,0,X'000000000000000000001F49AB5F1694131FFD994E00CC5FAFDD1C965C31A06366151717B1B158BFF0AE011ACF66C30C8C9C4A0AB0C440C65ACBE4BC75','["bytes=0-9"]','running',X'01010101010101010101010101010101',1,10,4,6,NULL,NULL,3990029021);
INSERT INTO "job_items" VALUES(2,1,X'000000000000000000001F4AE076C5300B9C6F83DE5EDFA1FDB8A8C479339CE0A55303F43246C19C85BEE23077A36B3497DAB4EE3FE9582BBED9DEA03D','["bytes=0-9"]','running',X'02020202020202020202020202020202',1,10,4,6,NULL,NULL,3788382626);
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
        , queue TEXT, supersedes INTEGER NOT NULL DEFAULT 0, row_sum INTEGER, owner TEXT, owner_limits TEXT, plan TEXT) STRICT;
INSERT INTO "jobs" VALUES(1,'job-1','succeeded','trailers','high',1000,60000,NULL,1780000000000,1780000001000,1780000002000,NULL,NULL,'player',1,2757334461,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(2,'job-2','running','trailers','high',1000,60000,NULL,1780000000000,1780000001000,NULL,NULL,NULL,'player',1,788985566,NULL,NULL,NULL);
CREATE TABLE meta (
            name TEXT PRIMARY KEY NOT NULL,
            value ANY NOT NULL
        ) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('closed',1);
INSERT INTO "meta" VALUES('keyCheck',X'000000000000000000001F415C69E68C182AB88F2387F42999160625757F7FAE069D');
INSERT INTO "meta" VALUES('revision',4);
INSERT INTO "meta" VALUES('run',3);
INSERT INTO "meta" VALUES('segments','s3fifo 1048576');
CREATE TABLE nonces (
    file INTEGER NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL CHECK ("end" > start),
    nonce INTEGER NOT NULL,
    PRIMARY KEY (file, start)
) STRICT, WITHOUT ROWID;
CREATE TABLE origins (
            name TEXT PRIMARY KEY NOT NULL,
            revision INTEGER NOT NULL,
            sealed_settings BLOB NOT NULL
        , row_sum INTEGER) STRICT, WITHOUT ROWID;
INSERT INTO "origins" VALUES('media',1,X'000000000000000000001F4BFB5EB20BF3707C732C4943941A7F76660EF7D4F71DC08F4185062BCA7B8BEE6520FD27B653CB9F85EA2A671DE1D3BBF5D4711400626C9708EB39C0A8890795A609908D7EDEE466419D235C98555EE71BAC97FE4560C03A95E5A27CCE9270FC03B678E660EFF0ED1814DBB6595BB452B6D0273E5539D11C81B66AE06618A715DC7C485F7494088582D6EC565AEAEC4FA642F26C2E639B8DB04A4F17A363E5123BDF6A0C92CD5202BE200DD7B5A195BE5F75D7C5C47AF0EAB285AEF3CEA951BA5AEF0C0C96DB33BCAC7A749D8DBA5145666C7C55F4E326D75915BDBCC35CD8ADE7443B466122A5535297620872CFEB2AA5BE91708AB6A2B55CBCB341AA7EBD44E1BAAC88A731FD612CF0980A5AC37E283A8BCFB36DF4E9509A004C9676FF67A212B06C1A304C057636F126786D2C293032A7607AEA227D3806EC382FB6F8670BB230C7B21FFF19212D1154AD1C96D608E3F19538D0B6EBA34B4960A6E964694D588E6E5D3AEAD2E844B5427C74AE84627F37FB73093CFD405054554FA1581659338CAEA9784FDD59916E5282318634D200E4934DA71A2CB8642EE6DAF7CFBF9DCF47A6BC753983B16AE26DBF2E43894FB501693DEE518822421265CED38BE7025FDE17B7AC740BE6E9B95B38FF219B2F6F19AB9DE2BAB1A986EE8CEEA1248ABBBA1E196494E97C6DBD5D3C8BCC5A353DFF6C0CC2D6C00F4A8D33660B0CC1651D5F9AEAB4369412BD0F470D4713E75EBEAE1DDE1FC9B20A8EDEBD160D60BB00BF7244F38F968845EBFF05F2B2ED7F850EF2BC5F8EC7CFE4C16B34210B727EDEE6A3A1D0118AF864F1F9FE38AE40D9FF248F31BA6D8984DEBC226543F481DA4F1DD2D3C7C9BFA738C00B16F14E4B17CB853274402BCDDAE0C78A4AF29DD3A0277076EB76CD8ADC3BD718708447A268922AD26D237C3C0BB7C20C8C7F8E162D56',2719577639);
CREATE TABLE policy (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            revision INTEGER NOT NULL,
            settings TEXT NOT NULL
        , row_sum INTEGER) STRICT;
INSERT INTO "policy" VALUES(1,2,'{"algorithm":"s3fifo","capacityBytes":1073741824,"grace":60000,"highWatermark":0.95,"lowWatermark":0.9,"maxIdle":86400000,"maxPinnedBytes":1048576,"minFreeDiskBytes":1048576,"minUses":2}',3191435954);
CREATE TABLE purged (
    asset BLOB PRIMARY KEY NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
    purge INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
INSERT INTO "segments" VALUES(X'02020202020202020202020202020202',0,7,1,2,NULL,1780000000,1780000001,3);
CREATE TABLE statistics_minutes (
            at INTEGER NOT NULL,
            origin TEXT NOT NULL,
            counters TEXT NOT NULL,
            PRIMARY KEY (at, origin)
        ) STRICT, WITHOUT ROWID;
CREATE TABLE sums (
            file INTEGER NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE,
            row INTEGER NOT NULL CHECK (row >= 0),
            sums BLOB NOT NULL,
            PRIMARY KEY (file, row)
        ) STRICT, WITHOUT ROWID;
INSERT INTO "sums" VALUES(12884901890,0,X'0101CDD66DF900E0A702BD815F9BC09A0CA08D06B742E77E98829DAC');
CREATE TABLE unsummed (
            file INTEGER PRIMARY KEY NOT NULL REFERENCES assets (file_serial) ON DELETE CASCADE
        ) STRICT;
INSERT INTO "unsummed" VALUES(12884901889);
INSERT INTO "unsummed" VALUES(12884901892);
CREATE TABLE webhook_deliveries (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook TEXT NOT NULL,
    message TEXT NOT NULL,
    kind TEXT NOT NULL,
    sealed_payload BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL
, row_sum INTEGER) STRICT;
INSERT INTO "webhook_deliveries" VALUES(1,'ops','msg_1','disk.full',X'000000000000000000001F601810A814D9548135A34B45C68477031B5683D0C4656AC1BD6E2A6C8CDB31A30FF9D36B35',1780000000000,2,1780000004000,3649864901);
CREATE INDEX assets_by_last_access ON assets (last_access_at, id);
CREATE INDEX assets_by_cached_bytes ON assets (cached_bytes, id);
CREATE INDEX assets_by_hits ON assets (hits, id);
CREATE INDEX assets_by_created_at ON assets (created_at, id);
CREATE INDEX assets_by_origin ON assets (origin, key);
CREATE INDEX assets_by_url ON assets (clear_url);
CREATE INDEX jobs_by_state ON jobs (state, sequence);
CREATE INDEX jobs_by_finished_at ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_by_queue ON jobs (queue, state, sequence) WHERE queue IS NOT NULL;
CREATE INDEX evictions_by_at ON evictions (at);
CREATE INDEX assets_by_pinned_until ON assets (pinned_until) WHERE pinned_until IS NOT NULL;
CREATE TABLE schedules (
    name TEXT PRIMARY KEY NOT NULL,
    revision INTEGER NOT NULL,
    sealed_schedule BLOB NOT NULL,
    run TEXT
) STRICT;
INSERT INTO "schedules" VALUES('nightly',3,X'ADCD2F87EDD8404D1F53F3EDA54C5D392368A0C1B4F86A386238131BEB1DEBFED831479C172E76523BFD61200E2671CD779B58A3103C1CD307AE24FA3F07B7D8269652CDBA1FE6396C90B710FCA2833FD8751F35FEE9BB51EBFB110345575EC21250EC1561F8DBDC960ED33CC347C0F952B0221DF16A250E7C7F1F6DEF6FEEEBEB43C484DC74D2EAD81C6165005B417FD541B74794CF65409C3633A517494F96EEF3ACF882D16EAD87C21B12768E6350C8551FDCD23BC7FFB79A35F14D3A640DAC8539A517E324C734062453',NULL);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY NOT NULL,
    revision INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT;
INSERT INTO "tokens" VALUES('player',4,'{"token":{"id":"player","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","scope":"read"},"createdAt":"2026-11-29T10:00:00.000Z","createdBy":"admin"}');
CREATE TRIGGER assets_inserted AFTER INSERT ON assets BEGIN
    UPDATE assets SET row_sum = larder_sum(
        id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from,
        entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age,
        fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify)
    WHERE id = NEW.id;
END;
CREATE TRIGGER job_items_inserted AFTER INSERT ON job_items BEGIN
    UPDATE job_items SET row_sum = larder_sum(job, position, sealed_reference, ranges, state, asset, attempts, bytes_total, bytes_from_cache, bytes_from_upstream, error_code, error_message) WHERE job = NEW.job AND position = NEW.position;
END;
CREATE TRIGGER origins_inserted AFTER INSERT ON origins BEGIN
    UPDATE origins SET row_sum = larder_sum(name, revision, sealed_settings) WHERE name = NEW.name;
END;
CREATE TRIGGER policy_inserted AFTER INSERT ON policy BEGIN
    UPDATE policy SET row_sum = larder_sum(only, revision, settings) WHERE only = NEW.only;
END;
CREATE TRIGGER assets_updated AFTER UPDATE OF id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from, entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age, fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify ON assets
WHEN OLD.row_sum IS larder_sum(OLD.id, OLD.key, OLD.origin, OLD.sealed_url, OLD.clear_url, OLD.generation, OLD.file_serial, OLD.length, OLD.content_type, OLD.content_type_from, OLD.entity_tag, OLD.last_modified, OLD.last_modified_is_strong, OLD.accepts_ranges, OLD.headers, OLD.received_at, OLD.initial_age, OLD.fresh_until, OLD.is_storable, OLD.created_at, OLD.is_pinned, OLD.tags, OLD.ttl, OLD.sealed_variant, OLD.pinned_until, OLD.verify) BEGIN
    UPDATE assets SET row_sum = larder_sum(id, key, origin, sealed_url, clear_url, generation, file_serial, length, content_type, content_type_from, entity_tag, last_modified, last_modified_is_strong, accepts_ranges, headers, received_at, initial_age, fresh_until, is_storable, created_at, is_pinned, tags, ttl, sealed_variant, pinned_until, verify) WHERE id = NEW.id;
END;
CREATE TRIGGER job_items_updated AFTER UPDATE OF job, position, sealed_reference, ranges, state, asset, attempts, bytes_total, bytes_from_cache, bytes_from_upstream, error_code, error_message ON job_items
WHEN OLD.row_sum IS larder_sum(OLD.job, OLD.position, OLD.sealed_reference, OLD.ranges, OLD.state, OLD.asset, OLD.attempts, OLD.bytes_total, OLD.bytes_from_cache, OLD.bytes_from_upstream, OLD.error_code, OLD.error_message) BEGIN
    UPDATE job_items SET row_sum = larder_sum(job, position, sealed_reference, ranges, state, asset, attempts, bytes_total, bytes_from_cache, bytes_from_upstream, error_code, error_message) WHERE job = NEW.job AND position = NEW.position;
END;
CREATE TRIGGER origins_updated AFTER UPDATE OF name, revision, sealed_settings ON origins
WHEN OLD.row_sum IS larder_sum(OLD.name, OLD.revision, OLD.sealed_settings) BEGIN
    UPDATE origins SET row_sum = larder_sum(name, revision, sealed_settings) WHERE name = NEW.name;
END;
CREATE TRIGGER policy_updated AFTER UPDATE OF only, revision, settings ON policy
WHEN OLD.row_sum IS larder_sum(OLD.only, OLD.revision, OLD.settings) BEGIN
    UPDATE policy SET row_sum = larder_sum(only, revision, settings) WHERE only = NEW.only;
END;
CREATE INDEX file_keys_by_master_key ON file_keys (master_key);
CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs BEGIN
    UPDATE jobs SET row_sum = larder_sum(sequence, id, state, label, priority, max_bytes_per_second, timeout, deadline_at, created_at, started_at, finished_at, error_code, error_message, queue, supersedes, owner, owner_limits, plan) WHERE sequence = NEW.sequence;
END;
CREATE TRIGGER jobs_updated AFTER UPDATE OF sequence, id, state, label, priority, max_bytes_per_second, timeout, deadline_at, created_at, started_at, finished_at, error_code, error_message, queue, supersedes, owner, owner_limits, plan ON jobs
WHEN OLD.row_sum IS larder_sum(OLD.sequence, OLD.id, OLD.state, OLD.label, OLD.priority, OLD.max_bytes_per_second, OLD.timeout, OLD.deadline_at, OLD.created_at, OLD.started_at, OLD.finished_at, OLD.error_code, OLD.error_message, OLD.queue, OLD.supersedes, OLD.owner, OLD.owner_limits, OLD.plan) BEGIN
    UPDATE jobs SET row_sum = larder_sum(sequence, id, state, label, priority, max_bytes_per_second, timeout, deadline_at, created_at, started_at, finished_at, error_code, error_message, queue, supersedes, owner, owner_limits, plan) WHERE sequence = NEW.sequence;
END;
CREATE INDEX webhook_deliveries_by_next_attempt ON webhook_deliveries (webhook, next_attempt_at, sequence);
CREATE TRIGGER webhook_deliveries_inserted AFTER INSERT ON webhook_deliveries BEGIN
    UPDATE webhook_deliveries SET row_sum = larder_sum(sequence, webhook, message, kind, sealed_payload, created_at, attempts, next_attempt_at) WHERE sequence = NEW.sequence;
END;
CREATE TRIGGER webhook_deliveries_updated AFTER UPDATE OF sequence, webhook, message, kind, sealed_payload, created_at, attempts, next_attempt_at ON webhook_deliveries
WHEN OLD.row_sum IS larder_sum(OLD.sequence, OLD.webhook, OLD.message, OLD.kind, OLD.sealed_payload, OLD.created_at, OLD.attempts, OLD.next_attempt_at) BEGIN
    UPDATE webhook_deliveries SET row_sum = larder_sum(sequence, webhook, message, kind, sealed_payload, created_at, attempts, next_attempt_at) WHERE sequence = NEW.sequence;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('jobs',2);
INSERT INTO "sqlite_sequence" VALUES('evictions',1);
INSERT INTO "sqlite_sequence" VALUES('webhook_deliveries',1);
COMMIT;
