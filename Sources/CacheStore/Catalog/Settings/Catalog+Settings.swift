package import CacheCore
import Foundation
import GRDB

/// A value with its revision number, for `ETag` and `If-Match` (RFC 9110 §13.1.1). A store never assigns a revision
/// number twice.
package struct Revised<Value: Sendable>: Sendable {
    package var value: Value
    package var revision: Int64

    package init(value: Value, revision: Int64) {
        self.value = value
        self.revision = revision
    }
}

/// The state of a fleet that a store has applied.
package struct FleetRecord: Hashable, Codable, Sendable {
    /// The name of the fleet.
    package var fleet: String
    /// The identity of the state in etcd: another one after etcd was emptied.
    package var identity: String
    /// The name of this store, by which two nodes with one name are told apart.
    package var store: String
    /// The number of the last purge, and its identifier, which the next one names.
    package var purges: Int64
    package var purgeID: String
    /// The revisions of the fleet's origins, by name.
    package var origins: [String: Int64] = [:]
    /// The revision of the fleet's policy; 0: the fleet has none.
    package var policy: Int64 = 0
    /// The revisions of the tokens of the API, by identifier. Nil: the record is of a version without them.
    package var tokens: [String: Int64]?

    package init(fleet: String, identity: String, store: String, purges: Int64, purgeID: String) {
        self.fleet = fleet
        self.identity = identity
        self.store = store
        self.purges = purges
        self.purgeID = purgeID
    }
}

extension FleetRecord {
    /// Origins, policy and tokens are read again: their revisions may have been assigned twice.
    package mutating func forgetRevisions() {
        origins = origins.mapValues { _ in 0 }
        policy = 0
        tokens = tokens?.mapValues { _ in 0 }
    }
}

/// What a node changes to have the state of its fleet.
package struct FleetChanges: Sendable {
    package var origins: [Revised<Origin>] = []
    package var removedOrigins: Set<String> = []
    package var policy: Revised<PolicySettings>?
    package var tokens: [StoredToken] = []
    package var removedTokens: Set<String> = []

    package init() {}

    /// The revisions that the fleet has assigned.
    fileprivate var revisions: [Int64] {
        origins.map(\.revision) + tokens.map(\.revision) + [policy?.revision].compactMap(\.self)
    }
}

/// Origins and the policy, with optimistic concurrency control by revision numbers.
extension Catalog {
    /// Returns all origins in the order of their names.
    package func origins() async throws(CacheError) -> [Revised<Origin>] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT name, revision, sealed_settings FROM origins ORDER BY name")
            return try rows.map { try Self.origin($0, secrets) }
        }
    }

    /// Returns an origin; nil if none has this name.
    package func origin(_ name: String) async throws(CacheError) -> Revised<Origin>? {
        let secrets = secrets
        return try await read { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT name, revision, sealed_settings FROM origins WHERE name = ?", arguments: [name])
            return try row.map { try Self.origin($0, secrets) }
        }
    }

    /// Inserts or replaces an origin; returns its new revision. Throws `preconditionFailed` if the precondition does
    /// not hold.
    package func saveOrigin(
        _ origin: Origin, if precondition: Precondition = .none
    ) async throws(CacheError) -> Int64 {
        let secrets = secrets
        return try await write { db in
            try Self.check(precondition, try Self.originRevision(origin.name, db))
            return try Self.save(origin, secrets, db)
        }
    }

    /// Deletes an origin; returns false if none has this name. Throws `preconditionFailed` if the precondition does not
    /// hold.
    package func deleteOrigin(
        _ name: String, if precondition: Precondition = .none
    ) async throws(CacheError) -> Bool {
        try await write { db in
            try Self.check(precondition, try Self.originRevision(name, db))
            try db.execute(sql: "DELETE FROM origins WHERE name = ?", arguments: [name])
            return db.changesCount > 0
        }
    }

    /// Saves and deletes origins in one transaction. Returns the new revisions of the saved ones, by name.
    package func changeOrigins(
        saving saved: [Origin], deleting deleted: Set<String>
    ) async throws(CacheError) -> [String: Int64] {
        let secrets = secrets
        return try await write { db in
            for name in deleted {
                try db.execute(sql: "DELETE FROM origins WHERE name = ?", arguments: [name])
            }
            var revisions: [String: Int64] = [:]
            for origin in saved { revisions[origin.name] = try Self.save(origin, secrets, db) }
            return revisions
        }
    }

    /// The state of the fleet that was applied last; nil: none.
    package func fleetRecord() async throws(CacheError) -> FleetRecord? {
        try await read { db in
            try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'fleet'").map {
                try RowCoding.value(json: $0)
            }
        }
    }

    /// Applies a state of the fleet in one transaction: stores the record with the changes. Their revisions are those of
    /// the fleet. Returns all tokens of the API; nil: they have not changed.
    @discardableResult package func apply(
        _ record: FleetRecord, _ changes: FleetChanges = FleetChanges()
    ) async throws(CacheError) -> StoredTokens? {
        let secrets = secrets
        return try await write { db in
            for name in changes.removedOrigins {
                try db.execute(sql: "DELETE FROM origins WHERE name = ?", arguments: [name])
            }
            for origin in changes.origins { try Self.save(origin.value, at: origin.revision, secrets, db) }
            if let policy = changes.policy { try Self.save(policy.value, at: policy.revision, db) }
            for id in changes.removedTokens { try Self.deleteToken(id, db) }
            for token in changes.tokens { try Self.save(token, db) }
            // A later change without the fleet must not repeat a revision.
            for revision in changes.revisions {
                try db.execute(
                    sql: """
                        INSERT INTO meta (name, value) VALUES ('revision', ?)
                        ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
                        """, arguments: [revision])
            }
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('fleet', ?)",
                arguments: [try RowCoding.json(record)])
            return changes.tokens.isEmpty && changes.removedTokens.isEmpty ? nil : try Self.tokens(db)
        }
    }

    /// Inserts or replaces an origin; returns its new revision.
    private static func save(_ origin: Origin, _ secrets: SecretBox, _ db: Database) throws -> Int64 {
        let revision = try nextRevision(db)
        try save(origin, at: revision, secrets, db)
        return revision
    }

    private static func save(_ origin: Origin, at revision: Int64, _ secrets: SecretBox, _ db: Database) throws {
        let settings = try secrets.seal(StoredSettings.text(of: origin.settings))
        try db.execute(
            sql: "INSERT OR REPLACE INTO origins (name, revision, sealed_settings) VALUES (?, ?, ?)",
            arguments: [origin.name, revision, settings])
    }

    /// Returns the policy; nil if none was ever saved.
    package func policy() async throws(CacheError) -> Revised<PolicySettings>? {
        try await read { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT revision, settings FROM policy") else { return nil }
            return Revised(value: try StoredSettings.policy(row[1]), revision: row[0])
        }
    }

    /// Saves the policy; returns its new revision. Throws `preconditionFailed` if the precondition does not hold.
    package func savePolicy(
        _ policy: PolicySettings, if precondition: Precondition = .none
    ) async throws(CacheError) -> Int64 {
        try await write { db in
            try Self.check(precondition, try Int64.fetchOne(db, sql: "SELECT revision FROM policy"))
            let revision = try Self.nextRevision(db)
            try Self.save(policy, at: revision, db)
            return revision
        }
    }

    private static func save(_ policy: PolicySettings, at revision: Int64, _ db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO policy (only, revision, settings) VALUES (1, ?, ?)",
            arguments: [revision, StoredSettings.text(of: policy)])
    }

    /// Decodes a row of `origins`.
    private static func origin(_ row: Row, _ secrets: SecretBox) throws -> Revised<Origin> {
        let settings = try StoredSettings.origin(try secrets.open(row[2]))
        return Revised(value: Origin(name: row[0], settings: settings), revision: row[1])
    }

    /// The stored revision of an origin; nil if none has this name.
    private static func originRevision(_ name: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT revision FROM origins WHERE name = ?", arguments: [name])
    }

    /// Compares the stored revision, nil if there is no entry, with the precondition.
    static func check(_ precondition: Precondition, _ revision: Int64?) throws(CacheError) {
        let holds =
            switch precondition {
            case .none: true
            case .revision(let expected): revision == expected
            case .exists: revision != nil
            case .absent: revision == nil
            }
        guard holds else {
            throw CacheError(.preconditionFailed, "The resource has changed; read it again and retry.")
        }
    }

    /// Increments the store's revision counter; returns the new value.
    static func nextRevision(_ db: Database) throws -> Int64 {
        try db.execute(
            sql: """
                INSERT INTO meta (name, value) VALUES ('revision', 1)
                ON CONFLICT (name) DO UPDATE SET value = value + 1
                """)
        return try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'revision'") ?? 1
    }
}
