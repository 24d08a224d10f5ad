package import CacheCore
import Foundation
import GRDB
import Synchronization

/// Why a catalog cannot be read: its file is not what was written.
struct DamagedCatalog: Error, CustomStringConvertible {
    let description: String

    static func isCause(_ error: any Error) -> Bool {
        (error as? DatabaseError).map { [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains($0.resultCode) } ?? false
    }

    var error: CacheError { CacheError(.storageCorrupt, "The catalog is damaged.", cause: self) }
}

/// The durable index: what is cached, the jobs, the origins, the policy and the statistics, in SQLite.
///
/// Every commit is on the device when its method returns (`synchronous = FULL` in WAL mode): a removal that a power cut
/// undid would leave rows that claim bytes which are holes by then. Methods suspend; none blocks the caller's thread.
package final class Catalog: Sendable {
    let pool: DatabasePool
    let secrets: SecretBox
    /// Counts the openings of this catalog, from 1: the high half of every file serial that this process gives out.
    let run: Int64
    /// The last run that began after one that ended out of order: bytes of earlier ones are to be checked before they are
    /// used. 0: there was none.
    let suspectRun: Int64
    /// What was taken out at the start, as it was not what was written: "origin media", "policy", a job with its identifier.
    let damagedRows: [String]
    /// The assets that were pinned at the start.
    package let pinned: [AssetID]
    /// The identifiers of the rows of `assets`.
    let assetIDs: AssetIDFilter
    /// Whether SQLite has met pages that make no tables, or tables and indexes that contradict each other: the next start is to
    /// look at all of them.
    let isDamaged = Atomic(false)
    /// Whether the last commit has met such damage.
    let isStuck = Atomic(false)

    /// Opens or creates the catalog and brings it to this version; blocks.
    ///
    /// Throws `conflict` where a newer version wrote it, and `storageCorrupt` where `secrets` is not its key, or where it is
    /// damaged: then its cause is a `DamagedCatalog`.
    ///
    /// - Parameter earlierRun: the last run that has left files behind; asked for where the catalog knows of none.
    init(path: String, secrets: SecretBox, earlierRun: () throws -> Int64 = { 0 }) throws(CacheError) {
        do {
            pool = try DatabasePool(path: path, configuration: Self.configuration)
            self.secrets = secrets
            try Self.makeDurable(pool)
            try SharedIndex.allocate(besides: path)
            try Self.migrate(pool, path)
            try Self.checkKey(pool, secrets)
            try Self.checkMarked(pool)
            let rows: Int
            (run, suspectRun, damagedRows, pinned, rows) = try pool.write { db in
                let run = try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'run'") ?? earlierRun()
                try db.execute(sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('run', ?)", arguments: [run + 1])
                let damagedRows = try Self.dropDamagedRows(db)
                try Self.requeueRunningJobs(db)
                let suspectRun = try Self.suspectRun(db, beginning: run + 1)
                let rows = try Int.fetchOne(db, sql: "SELECT count(*) FROM assets") ?? 0
                return (run + 1, suspectRun, damagedRows, try Self.pinnedAssets(db), rows)
            }
            assetIDs = AssetIDFilter(rows: rows)
            if suspectRun == run { try Self.check(pool, "quick_check") }
        } catch {
            throw DamagedCatalog.isCause(error)
                ? DamagedCatalog(description: "\(error)").error : CacheError(database: error)
        }
    }

    /// That the pages still make tables and indexes.
    private static func check(_ pool: DatabasePool, _ pragma: String) throws {
        let answer = try pool.read { db in try String.fetchOne(db, sql: "PRAGMA \(pragma)(1)") }
        guard answer == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: answer) }
    }

    /// Where damage was met in use: that indexes and tables are of one mind. A disk that failed to read for a while does no harm.
    private static func checkMarked(_ pool: DatabasePool) throws {
        let mark = try pool.read { db in try Row.fetchOne(db, sql: "SELECT 1 FROM meta WHERE name = 'damaged'") }
        guard mark != nil else { return }
        try check(pool, "integrity_check")
        try pool.write { db in try db.execute(sql: "DELETE FROM meta WHERE name = 'damaged'") }
    }

    /// Takes the mark of an orderly end away, or writes down that it was not there.
    private static func suspectRun(_ db: Database, beginning run: Int64) throws -> Int64 {
        try db.execute(sql: "DELETE FROM meta WHERE name = 'closed'")
        if db.changesCount == 0, run > 1 {
            try db.execute(sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('suspectRun', ?)", arguments: [run])
        }
        return try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'suspectRun'") ?? 0
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "larder.catalog"
        configuration.maximumReaderCount = 4
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { $0.add(function: RowSum.function) }
        return configuration
    }

    /// GRDB sets `synchronous = NORMAL` when it opens in WAL mode, after all hooks: hence here, and read back.
    private static func makeDurable(_ pool: DatabasePool) throws {
        try pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = FULL")
            let isFull = try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2
            let isWAL = try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal"
            guard isFull && isWAL else {
                throw CacheError(.internal, "SQLite refuses a write-ahead log with full synchronisation.")
            }
        }
    }

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

    /// What an older version has written has the first of the migrations known to this one; what a newer one has, all of them and
    /// more.
    private static func checkVersion(_ pool: DatabasePool, _ path: String, _ migrator: DatabaseMigrator) throws {
        let damage = DatabaseError(
            resultCode: .SQLITE_CORRUPT, message: "its list of migrations is not what was written")
        let applied: Set<String>
        do {
            applied = try pool.read(migrator.appliedIdentifiers)
        } catch {
            throw error is DatabaseError ? error : damage  // what is no text names no migration
        }
        let known = migrator.migrations
        guard applied.count > known.count else {
            guard applied == Set(known.prefix(applied.count)) else { throw damage }
            return
        }
        guard applied.isSuperset(of: known) else { throw damage }
        throw CacheError(
            .conflict, "The catalog \(path) was written by a newer version of Larder; this one cannot read it.")
    }

    /// That tables, indexes and triggers are those that were written; the sum goes before they are changed, so that an end
    /// between the two leaves none.
    private static func checkSchema(_ db: Database, staying: Bool) throws {
        guard try db.tableExists("meta") else { return }
        guard let known = try knownSchema(db) else { return }
        guard try known == schemaSum(db) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "its schema is not what was written")
        }
        if !staying { try db.execute(sql: "DELETE FROM meta WHERE name = 'schema'") }
    }

    private static func knownSchema(_ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'schema'")
    }

    private static func schemaSum(_ db: Database) throws -> Int64 {
        let sql = try String.fetchAll(
            db,
            sql: "SELECT name || ifnull(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name")
        return Int64(Checksum.of(Array(sql.joined(separator: "\n").utf8)))
    }

    /// A sealed word in the catalog tells whether the key is the one it was written with.
    private static func checkKey(_ pool: DatabasePool, _ secrets: SecretBox) throws {
        let word = "larder"
        let isRight: Bool = try pool.write { db in
            if let sealed = try Data.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'keyCheck'") {
                return (try? secrets.open(sealed)) == word  // an error is the answer no
            }
            try db.execute(
                sql: "INSERT INTO meta (name, value) VALUES ('keyCheck', ?)", arguments: [try secrets.seal(word)])
            return true
        }
        guard isRight else {
            throw CacheError(
                .storageCorrupt, "secret.key is not the key that the catalog was written with; put the old one back.")
        }
    }

    /// Runs `body` on a reading connection, off the caller's thread.
    func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) async throws(CacheError) -> Value {
        do { return try await pool.read(body) } catch { throw failure(error) }
    }

    /// Runs `body` in one transaction that is durable when this returns, off the caller's thread.
    ///
    /// Not cancelled with the task: what ends a piece of work must be able to write down how it ended.
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

    /// What a failure means, where it may tell of damage.
    func failure(_ error: any Error) -> CacheError {
        DamagedCatalog.isCause(error) ? damage("\(error)") : CacheError(database: error)
    }

    /// The catalog is not what was written: notes it.
    func damage(_ description: String) -> CacheError {
        isDamaged.store(true, ordering: .relaxed)
        return DamagedCatalog(description: description).error
    }

    /// Marks the end as orderly where it is.
    func close(isOrderly: Bool) throws(CacheError) {
        do {
            if isDamaged.load(ordering: .relaxed) {
                // Where that cannot be written the end is not orderly, and the next start looks for itself.
                try? pool.write { db in
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('damaged', ?)",
                        arguments: ["damage was met while the catalog was in use"])
                }
            } else if isOrderly {
                try pool.write { db in
                    try db.execute(sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('closed', 1)")
                }
            }
            try pool.close()
        } catch { throw CacheError(database: error) }
    }
}
