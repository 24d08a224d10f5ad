package import CacheCore
import Foundation
import GRDB
import Synchronization

/// Cause of a `storageCorrupt` error: the database file, or its schema, is damaged.
struct DamagedCatalog: Error, CustomStringConvertible {
    /// SQLite's message; for logs.
    let description: String

    /// Whether SQLite reports a malformed database file.
    static func isCause(_ error: any Error) -> Bool {
        (error as? DatabaseError).map { [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains($0.resultCode) } ?? false
    }

    var error: CacheError { CacheError(.storageCorrupt, "The catalog is damaged.", cause: self) }
}

/// The durable index in SQLite: cached assets, jobs, origins, policy and statistics.
///
/// Every write is on the device when its method returns (`synchronous = FULL` in WAL mode). If a power loss could undo
/// a removal, rows would claim bytes that are holes by then. The `async` methods suspend; none of them blocks the
/// caller's thread.
package final class Catalog: Sendable {
    /// One writer connection and several readers.
    let pool: DatabasePool
    /// Encrypts the `sealed` columns.
    let secrets: SecretBox
    /// Number of this service run: it counts the openings of this catalog from 1. It is the high half of every file
    /// serial that this process assigns.
    let run: Int64
    /// Number of the last run that followed an unclean shutdown; 0 if there was none. Bytes written or verified before
    /// it must be verified before their next use.
    let suspectRun: Int64
    /// Names of the damaged rows that this opening deleted: "origin media", "policy", or "job" with its identifier.
    let damagedRows: [String]
    /// The assets that were pinned at the start.
    package let pinned: [AssetID]
    /// The assets that purges have selected and that are not removed yet.
    let purged = PurgedAssets()
    /// The purges of the table `purges` at the start.
    package let purges: [PurgeRecord]
    /// Whether the catalog has keys of encrypted files; false: files need not be looked up.
    let hasEncryptedFiles = Atomic(false)
    /// Filter over the identifiers of `assets`.
    let assetIDs: AssetIDFilter
    /// Whether SQLite reported corruption since the start: malformed pages, or contradictory tables and indexes. The
    /// next start then runs a full integrity check.
    let isDamaged = Atomic(false)
    /// Whether writes have ended.
    private let isEnded = Atomic(false)
    /// Whether the last commit failed because of such corruption.
    let isStuck = Atomic(false)

    /// Opens or creates the catalog and migrates it to this version. Blocks.
    ///
    /// Throws `conflict` if a newer version wrote the catalog. Throws `storageCorrupt` if `secrets` has the wrong key,
    /// or if the catalog is damaged; then the cause is a `DamagedCatalog`.
    ///
    /// - Parameter earlierRun: returns the number of the last run that left files behind. It is called only if the
    ///   catalog has no run number.
    init(path: String, secrets: SecretBox, earlierRun: () throws -> Int64 = { 0 }) throws(CacheError) {
        do {
            pool = try DatabasePool(path: path, configuration: Self.configuration)
            self.secrets = secrets
            try Self.makeDurable(pool)
            // Before the first transaction: a full disk must cause an error, not SIGBUS.
            try SharedIndex.allocate(besides: path)
            try Self.migrate(pool, path)
            try Self.checkKey(pool, secrets)
            try Self.checkMarked(pool)
            let rows: Int
            (run, suspectRun, damagedRows, pinned, purges, rows) = try pool.write { [purged] db in
                let run = try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'run'") ?? earlierRun()
                try db.execute(sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('run', ?)", arguments: [run + 1])
                // Before any row is decoded.
                let damagedRows = try Self.dropDamagedRows(db)
                try Self.requeueRunningJobs(db)
                let suspectRun = try Self.suspectRun(db, beginning: run + 1)
                let rows = try Int.fetchOne(db, sql: "SELECT count(*) FROM assets") ?? 0
                let purges = try Self.purges(db, into: purged)
                return (run + 1, suspectRun, damagedRows, try Self.pinnedAssets(db), purges, rows)
            }
            assetIDs = AssetIDFilter(rows: rows)
            let hasKeys = try pool.read { try Bool.fetchOne($0, sql: "SELECT EXISTS (SELECT 1 FROM file_keys)") }
            hasEncryptedFiles.store(hasKeys ?? false, ordering: .relaxed)
            // The run before this one had an unclean shutdown.
            if suspectRun == run { try Self.check(pool, "quick_check") }
        } catch {
            throw DamagedCatalog.isCause(error)
                ? DamagedCatalog(description: "\(error)").error : CacheError(database: error)
        }
    }

    /// Throws `SQLITE_CORRUPT` unless the pragma `quick_check` or `integrity_check` answers "ok".
    private static func check(_ pool: DatabasePool, _ pragma: String) throws {
        let answer = try pool.read { db in try String.fetchOne(db, sql: "PRAGMA \(pragma)(1)") }
        guard answer == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: answer) }
    }

    /// Runs a full integrity check if the last run reported corruption. A temporary read failure of the disk passes
    /// this check and causes no reset.
    private static func checkMarked(_ pool: DatabasePool) throws {
        let mark = try pool.read { db in try Row.fetchOne(db, sql: "SELECT 1 FROM meta WHERE name = 'damaged'") }
        guard mark != nil else { return }
        try check(pool, "integrity_check")
        try pool.write { db in try db.execute(sql: "DELETE FROM meta WHERE name = 'damaged'") }
    }

    /// Deletes the mark of a clean shutdown; records this run as suspect if the mark is missing.
    private static func suspectRun(_ db: Database, beginning run: Int64) throws -> Int64 {
        try db.execute(sql: "DELETE FROM meta WHERE name = 'closed'")
        if db.changesCount == 0, run > 1 {
            try db.execute(sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('suspectRun', ?)", arguments: [run])
        }
        return try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'suspectRun'") ?? 0
    }

    /// Up to four readers. A locked database is retried for 5 s.
    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "larder.catalog"
        configuration.maximumReaderCount = 4
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            db.add(function: RowChecksum.function)
            db.add(function: UsageTable.function)
            db.add(function: AssetQuery.function)
            // A row that is replaced is deleted with the triggers of a deletion.
            try db.execute(sql: "PRAGMA recursive_triggers = ON")
            // Deleted keys of files are overwritten.
            try db.execute(sql: "PRAGMA secure_delete = ON")
        }
        return configuration
    }

    /// A connection that changes nothing, also while a service uses the catalog. A locked catalog is retried for 5 s.
    static func readOnly(_ path: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Sets `synchronous = FULL` and verifies it. This must follow the opening: GRDB sets `synchronous = NORMAL` when
    /// it opens in WAL mode, after all hooks.
    private static func makeDurable(_ pool: DatabasePool) throws {
        try pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = FULL")
            let isFull = try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2
            let isWAL = try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal"
            guard isFull && isWAL else {
                throw CacheError(.internal, "SQLite cannot use a write-ahead log with synchronous = FULL.")
            }
        }
    }

    /// Checks version and schema, applies the missing migrations, and records the new schema checksum.
    private static func migrate(_ pool: DatabasePool, _ path: String) throws {
        let migrator = Migrations.migrator
        try checkVersion(pool, path, migrator)
        try pool.write { db in try checkSchema(db, staying: migrator.hasCompletedMigrations(db)) }
        try migrator.migrate(pool)
        try pool.write { db in
            guard try knownSchema(db) == nil else { return }
            try db.execute(sql: "INSERT INTO meta (name, value) VALUES ('schema', ?)", arguments: [schemaSum(db)])
        }
    }

    /// Checks the applied migrations. An older version has applied a prefix of the migrations known here. A newer
    /// version has applied all of them and more: that throws `conflict`. Any other list is damage.
    static func checkVersion(_ pool: some DatabaseReader, _ path: String, _ migrator: DatabaseMigrator) throws {
        let damage = DatabaseError(
            resultCode: .SQLITE_CORRUPT, message: "its list of migrations is not one of a known version")
        let applied: Set<String>
        do {
            applied = try pool.read(migrator.appliedIdentifiers)
        } catch {
            throw error is DatabaseError ? error : damage  // an identifier is not a text
        }
        let known = migrator.migrations
        // Not newer: the applied migrations must be the first ones, in order.
        guard applied.count > known.count else {
            guard applied == Set(known.prefix(applied.count)) else { throw damage }
            return
        }
        guard applied.isSuperset(of: known) else { throw damage }
        throw CacheError(
            .conflict, "The catalog \(path) was written by a newer version of Larder; use that version.")
    }

    /// Compares tables, indexes and triggers with the recorded checksum of the schema. The checksum is deleted before a
    /// migration changes the schema, so that an interrupted migration leaves no wrong checksum.
    private static func checkSchema(_ db: Database, staying: Bool) throws {
        guard try db.tableExists("meta") else { return }
        guard let known = try knownSchema(db) else { return }
        guard try known == schemaSum(db) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "its schema does not match the recorded checksum")
        }
        if !staying { try db.execute(sql: "DELETE FROM meta WHERE name = 'schema'") }
    }

    /// The recorded schema checksum; nil if none is recorded.
    private static func knownSchema(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'schema'")
    }

    /// CRC-32C of the SQL text of all tables, indexes and triggers.
    private static func schemaSum(_ db: Database) throws -> Int64 {
        let sql = try String.fetchAll(
            db,
            sql: "SELECT name || ifnull(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name")
        return Int64(Checksum.of(Array(sql.joined(separator: "\n").utf8)))
    }

    /// Verifies the key: a sealed constant in the catalog can be decrypted only with the original key.
    private static func checkKey(_ pool: DatabasePool, _ secrets: SecretBox) throws {
        let word = "larder"
        let isRight: Bool = try pool.write { db in
            if let sealed = try Data.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'keyCheck'") {
                return (try? secrets.open(sealed)) == word  // an error means: wrong key
            }
            try db.execute(
                sql: "INSERT INTO meta (name, value) VALUES ('keyCheck', ?)", arguments: [try secrets.seal(word)])
            return true
        }
        guard isRight else {
            throw CacheError(
                .storageCorrupt, "secret.key is not the key of this catalog; restore the original file.")
        }
    }

    /// Runs `body` on a reader connection, off the caller's thread.
    func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws(CacheError) -> Value {
        do { return try await pool.read(body) } catch { throw failure(error) }
    }

    /// Runs `body` in one transaction, durable on return, off the caller's thread.
    ///
    /// Ignores task cancellation: a cancelled job must still be able to record its final state.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(CacheError) -> Value {
        let outcome = await withCheckedContinuation { continuation in
            pool.asyncWrite(body) { _, outcome in
                continuation.resume(returning: outcome.mapError { self.failure($0) })
            }
        }
        return try outcome.get()
    }

    /// Maps an error to a `CacheError`, and records corruption.
    func failure(_ error: any Error) -> CacheError {
        if isEnded.load(ordering: .relaxed), let error = error as? DatabaseError, error.resultCode == .SQLITE_READONLY {
            return CacheError(.shuttingDown, "The service is shutting down.", cause: error)
        }
        return DamagedCatalog.isCause(error) ? damage("\(error)") : CacheError(database: error)
    }

    /// Records that the catalog is damaged; returns the error to throw.
    func damage(_ description: String) -> CacheError {
        isDamaged.store(true, ordering: .relaxed)
        return DamagedCatalog(description: description).error
    }

    /// Ends all writes, for the next process: later ones throw `.shuttingDown`, and reads go on. Records a clean shutdown if
    /// it is one, or the damage that was found. Further calls have no effect.
    func endWrites(isOrderly: Bool) throws(CacheError) {
        guard !isEnded.load(ordering: .relaxed) else { return }
        let mark: (name: String, value: any DatabaseValueConvertible)? =
            isDamaged.load(ordering: .relaxed)
            ? ("damaged", "damage was met while the catalog was in use") : isOrderly ? ("closed", 1) : nil
        do {
            try pool.writeWithoutTransaction { db in
                if let mark {
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
                        arguments: [mark.name, mark.value])
                }
                try db.execute(sql: "PRAGMA query_only = 1")
                isEnded.store(true, ordering: .relaxed)
            }
        } catch { throw CacheError(database: error) }
    }

    /// Ends all writes and closes the database. No read may be in progress.
    func close(isOrderly: Bool) throws(CacheError) {
        // If a mark of damage cannot be written, the shutdown counts as unclean, and the next start checks the catalog anyway.
        do throws(CacheError) { try endWrites(isOrderly: isOrderly) } catch  where isDamaged.load(ordering: .relaxed) {}
        do { try pool.close() } catch { throw CacheError(database: error) }
    }
}
