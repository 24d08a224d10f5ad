package import CacheCore
import GRDB

/// A token that was made over the API. Its document contains the digest of the secret, not the secret.
package struct StoredToken: Hashable, Sendable {
    /// The name of its reader.
    package var id: String
    /// JSON text, which the store does not interpret.
    package var document: String
    package var revision: Int64

    package init(id: String, document: String, revision: Int64) {
        self.id = id
        self.document = document
        self.revision = revision
    }
}

/// All tokens of the API at one time.
package struct StoredTokens: Sendable {
    /// By identifier.
    package var tokens: [String: StoredToken] = [:]
    /// Greater after each change, in one process.
    package var version = 0

    package init() {}
}

/// The tokens of the API, with optimistic concurrency control by revision numbers. Each change returns all tokens, so that
/// changes that end at the same time are told apart by their versions.
extension Catalog {
    package func tokens() async throws(CacheError) -> StoredTokens { try await write { try Self.tokens($0) } }

    /// Inserts or replaces a token. Throws `preconditionFailed` if the precondition does not hold.
    package func saveToken(
        _ id: String, _ document: String, if precondition: Precondition
    ) async throws(CacheError) -> StoredTokens {
        try await write { db in
            try Self.check(precondition, try Self.tokenRevision(id, db))
            try Self.save(StoredToken(id: id, document: document, revision: try Self.nextRevision(db)), db)
            return try Self.tokens(db)
        }
    }

    /// Deletes a token. Throws `preconditionFailed` if the precondition does not hold.
    package func deleteToken(_ id: String, if precondition: Precondition) async throws(CacheError) -> StoredTokens {
        try await write { db in
            try Self.check(precondition, try Self.tokenRevision(id, db))
            try Self.deleteToken(id, db)
            return try Self.tokens(db)
        }
    }

    /// Reads with the connection that writes, whose number of changes is the version.
    static func tokens(_ db: Database) throws -> StoredTokens {
        var stored = StoredTokens()
        for row in try Row.fetchAll(db, sql: "SELECT id, document, revision FROM tokens") {
            stored.tokens[row[0]] = StoredToken(id: row[0], document: row[1], revision: row[2])
        }
        stored.version = db.totalChangesCount
        return stored
    }

    static func save(_ token: StoredToken, _ db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO tokens (id, document, revision) VALUES (?, ?, ?)",
            arguments: [token.id, token.document, token.revision])
    }

    static func deleteToken(_ id: String, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM tokens WHERE id = ?", arguments: [id])
    }

    private static func tokenRevision(_ id: String, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(db, sql: "SELECT revision FROM tokens WHERE id = ?", arguments: [id])
    }
}
