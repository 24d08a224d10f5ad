import CacheCore
import Foundation
import GRDB

/// The durable index: what is cached, the jobs, the origins, the policy and the statistics, in SQLite.
///
/// Every commit is on the device when its method returns (`synchronous = FULL` in WAL mode): a removal that a power cut
/// undid would leave rows that claim bytes which are holes by then. Methods suspend; none blocks the caller's thread.
package final class Catalog: Sendable {
    let pool: DatabasePool
    let secrets: SecretBox
    /// Counts the openings of this catalog, from 1: the high half of every file serial that this process gives out.
    let run: Int64

    /// Opens or creates the catalog and brings it to this version; blocks.
    ///
    /// Throws `conflict` where a newer version wrote it, and `storageCorrupt` where `secrets` is not its key.
    init(path: String, secrets: SecretBox) throws(CacheError) {
        do {
            pool = try DatabasePool(path: path, configuration: Self.configuration)
            self.secrets = secrets
            try Self.makeDurable(pool)
            try Self.migrate(pool, path)
            try Self.checkKey(pool, secrets)
            run = try pool.write { db in
                let run = try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'run'") ?? 0
                try db.execute(sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('run', ?)", arguments: [run + 1])
                try Self.requeueRunningJobs(db)
                return run + 1
            }
        } catch {
            throw CacheError(database: error)
        }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "larder.catalog"
        configuration.maximumReaderCount = 4
        configuration.busyMode = .timeout(5)
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
        guard try !pool.read(migrator.hasBeenSuperseded) else {
            throw CacheError(
                .conflict, "The catalog \(path) was written by a newer version of Larder; this one cannot read it.")
        }
        try migrator.migrate(pool)
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
        do { return try await pool.read(body) } catch { throw CacheError(database: error) }
    }

    /// Runs `body` in one transaction that is durable when this returns, off the caller's thread.
    ///
    /// Not cancelled with the task: what ends a piece of work must be able to write down how it ended.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(CacheError) -> Value {
        let outcome = await withCheckedContinuation { continuation in
            pool.asyncWrite(body) { _, outcome in
                continuation.resume(returning: outcome.mapError { CacheError(database: $0) })
            }
        }
        return try outcome.get()
    }

    func close() throws(CacheError) {
        do { try pool.close() } catch { throw CacheError(database: error) }
    }
}
