package import CacheCore
import Foundation
import GRDB

/// A value and the number of its last change, for `ETag` and `If-Match`; a number is never given twice in a store.
package struct Revised<Value: Sendable>: Sendable {
    package var value: Value
    package var revision: Int64

    package init(value: Value, revision: Int64) {
        self.value = value
        self.revision = revision
    }
}

extension Catalog {
    /// All origins in the order of their names.
    package func origins() async throws(CacheError) -> [Revised<Origin>] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT name, revision, sealed_settings FROM origins ORDER BY name")
            return try rows.map { try Self.origin($0, secrets) }
        }
    }

    /// Nil where there is no origin of that name.
    package func origin(_ name: String) async throws(CacheError) -> Revised<Origin>? {
        let secrets = secrets
        return try await read { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT name, revision, sealed_settings FROM origins WHERE name = ?", arguments: [name])
            return try row.map { try Self.origin($0, secrets) }
        }
    }

    /// Inserts or replaces an origin; answers its new revision. Throws `preconditionFailed`.
    package func saveOrigin(
        _ origin: Origin, if precondition: Precondition = .none
    ) async throws(CacheError) -> Int64 {
        let secrets = secrets
        return try await write { db in
            try Self.check(precondition, try Self.originRevision(origin.name, db))
            let revision = try Self.nextRevision(db)
            let settings = try secrets.seal(RowCoding.json(OriginText(origin.settings)))
            try db.execute(
                sql: "INSERT OR REPLACE INTO origins (name, revision, sealed_settings) VALUES (?, ?, ?)",
                arguments: [origin.name, revision, settings])
            return revision
        }
    }

    /// Answers false where there was no such origin. Throws `preconditionFailed`.
    package func deleteOrigin(
        _ name: String, if precondition: Precondition = .none
    ) async throws(CacheError) -> Bool {
        try await write { db in
            try Self.check(precondition, try Self.originRevision(name, db))
            try db.execute(sql: "DELETE FROM origins WHERE name = ?", arguments: [name])
            return db.changesCount > 0
        }
    }

    /// Nil where none was ever saved.
    package func policy() async throws(CacheError) -> Revised<PolicySettings>? {
        try await read { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT revision, settings FROM policy") else { return nil }
            return Revised(
                value: try RowCoding.value(PolicyText.self, json: row[1]).policy(), revision: row[0])
        }
    }

    /// Answers the policy's new revision. Throws `preconditionFailed`.
    package func savePolicy(
        _ policy: PolicySettings, if precondition: Precondition = .none
    ) async throws(CacheError) -> Int64 {
        try await write { db in
            try Self.check(precondition, try Int64.fetchOne(db, sql: "SELECT revision FROM policy"))
            let revision = try Self.nextRevision(db)
            try db.execute(
                sql: "INSERT OR REPLACE INTO policy (only, revision, settings) VALUES (1, ?, ?)",
                arguments: [revision, try RowCoding.json(PolicyText(policy))])
            return revision
        }
    }

    private static func origin(_ row: Row, _ secrets: SecretBox) throws -> Revised<Origin> {
        let text = try RowCoding.value(OriginText.self, json: try secrets.open(row[2]))
        return Revised(value: Origin(name: row[0], settings: try text.settings()), revision: row[1])
    }

    private static func originRevision(_ name: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT revision FROM origins WHERE name = ?", arguments: [name])
    }

    private static func check(_ precondition: Precondition, _ revision: Int64?) throws(CacheError) {
        let holds =
            switch precondition {
            case .none: true
            case .revision(let expected): revision == expected
            case .exists: revision != nil
            case .absent: revision == nil
            }
        guard holds else {
            throw CacheError(.preconditionFailed, "It was changed by somebody else in the meantime.")
        }
    }

    private static func nextRevision(_ db: Database) throws -> Int64 {
        try db.execute(
            sql: """
                INSERT INTO meta (name, value) VALUES ('revision', 1)
                ON CONFLICT (name) DO UPDATE SET value = value + 1
                """)
        return try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'revision'") ?? 1
    }
}
