package import CacheCore
import Foundation
import GRDB

/// Secrets that the service itself has to remember.
extension Catalog {
    /// Stores a secret, sealed, under a name. It is committed when this returns.
    package func saveSecret(_ text: String, as name: String) async throws(CacheError) {
        let secrets = secrets
        try await write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
                arguments: [Self.secretName(name), try secrets.seal(text)])
        }
    }

    /// The secret of that name; nil if there is none. Throws `storageCorrupt` if it cannot be decrypted.
    package func secret(_ name: String) async throws(CacheError) -> String? {
        let secrets = secrets
        return try await read { db in
            let sealed = try Data.fetchOne(
                db, sql: "SELECT value FROM meta WHERE name = ?", arguments: [Self.secretName(name)])
            return try sealed.map { try secrets.open($0) }
        }
    }

    /// A digest of a text that cannot be guessed without the key of this store, as 32 hexadecimal digits.
    package func keyedDigest(of text: String) -> String { secrets.digest(of: text) }

    private static func secretName(_ name: String) -> String { "secret " + name }
}
