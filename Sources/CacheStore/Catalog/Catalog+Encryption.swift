package import CacheCore
import Cryptography
import Foundation
import GRDB
import Synchronization

/// Keys of encrypted files.
extension Catalog {
    /// The sealed key and the nonces of a file; nil if it is not encrypted. Blocks.
    func cipher(of file: Int64) throws(CacheError) -> (SealedKey, NonceRuns)? {
        do {
            return try pool.read { db in
                try NonceTable.key(of: file, db).map { ($0, try NonceTable.runs(of: file, db)) }
            }
        } catch {
            throw failure(error)
        }
    }

    /// The number of encrypted files by the identifier of their master key, without erased ones, each with the sealed key
    /// of one file.
    fileprivate func sealedKeys() async throws(CacheError) -> [(files: Int, file: Int64, key: SealedKey)] {
        guard hasEncryptedFiles.load(ordering: .relaxed) else { return [] }
        return try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT count(*), max(file), master_key, sealed FROM file_keys WHERE length(sealed) > 0
                    GROUP BY master_key
                    """
            ).map { ($0[0], $0[1], SealedKey(masterKey: $0[2], bytes: $0[3])) }
        }
    }

    /// The next assets of an origin, in the order of their identifiers, whose bytes are stored encrypted or not.
    package func assets(
        of origin: String, encrypted: Bool, after id: AssetID?, limit: Int
    ) async throws(CacheError) -> [AssetID] {
        guard !encrypted || hasEncryptedFiles.load(ordering: .relaxed) else { return [] }
        return try await read { db in
            try Data.fetchAll(
                db,
                sql: """
                    SELECT id FROM assets LEFT JOIN file_keys ON file = file_serial
                    WHERE origin = ? AND file_serial IS NOT NULL AND (file IS NOT NULL) = ? AND id > ? ORDER BY id LIMIT ?
                    """,
                arguments: [origin, encrypted, id.map(RowCoding.blob) ?? Data(), limit]
            ).map { try RowCoding.assetID($0) }
        }
    }

    /// The number of assets of an origin whose bytes are stored encrypted or not.
    package func assetCount(of origin: String, encrypted: Bool) async throws(CacheError) -> Int {
        guard !encrypted || hasEncryptedFiles.load(ordering: .relaxed) else { return 0 }
        return try await read { db in
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM assets LEFT JOIN file_keys ON file = file_serial
                    WHERE origin = ? AND file_serial IS NOT NULL AND (file IS NOT NULL) = ?
                    """, arguments: [origin, encrypted]) ?? 0
        }
    }
}

/// The use of one master key.
package struct MasterKeyUse: Hashable, Sendable {
    package let id: String
    /// The number of files whose keys it seals.
    package let files: Int
    /// Whether the service has the key, and it is the right one.
    package let isAvailable: Bool
}

extension Store {
    /// The master keys in use, by identifier.
    package func masterKeyUse() async throws(CacheError) -> [MasterKeyUse] {
        try await catalog.sealedKeys().map { files, file, key in
            let isRight = masterKeys.key(key.masterKey).flatMap { key.opened(with: $0, of: file) } != nil
            return MasterKeyUse(id: key.masterKey, files: files, isAvailable: isRight)
        }
    }
}

// MARK: Rotation

extension Store {
    private static let rotation = "keyRotation"

    /// The last rotation; nil if there was none.
    package func rotation() async throws(CacheError) -> KeyRotation? {
        try await catalog.read { db in
            try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = ?", arguments: [Self.rotation])
                .map { try RowCoding.value(json: $0) }
        }
    }

    /// Stores a new rotation to the active master key, in place of the last one. Throws `encryptionKeyMissing`.
    package func beginRotation(at now: Timestamp) async throws(CacheError) -> KeyRotation {
        let active = try masterKeys.active().id
        return try await catalog.write { db in
            let files = try Int.fetchOne(
                db, sql: "SELECT count(*) FROM file_keys WHERE master_key <> ? AND length(sealed) > 0",
                arguments: [active])
            let rotation = KeyRotation(activeKey: active, startedAt: now, files: files ?? 0)
            try Self.save(rotation, db)
            return rotation
        }
    }

    /// Seals the keys of the next files, in one transaction. Returns the new state; its bytes are untouched.
    package func rotate(
        _ rotation: KeyRotation, limit: Int = 500, at now: Timestamp
    ) async throws(CacheError) -> KeyRotation {
        guard let active = masterKeys.key(rotation.activeKey) else { throw SealedKey.missing(id: rotation.activeKey) }
        return try await catalog.write { [masterKeys] db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT file, master_key, sealed FROM file_keys WHERE file > ? AND master_key <> ? AND length(sealed) > 0
                    ORDER BY file LIMIT ?
                    """, arguments: [rotation.last, active.id, limit])
            var rotation = rotation
            for row in rows {
                let (file, sealed) = (row[0] as Int64, SealedKey(masterKey: row[1], bytes: row[2]))
                rotation.last = file
                guard let key = masterKeys.key(sealed.masterKey).flatMap({ sealed.opened(with: $0, of: file) }) else {
                    rotation.filesLocked += 1
                    continue
                }
                let new = try SealedKey(key, of: file, with: active)
                try db.cachedStatement(sql: "UPDATE file_keys SET master_key = ?, sealed = ? WHERE file = ?")
                    .execute(arguments: [new.masterKey, new.bytes, file])
                rotation.filesDone += 1
            }
            if rows.count < limit { rotation.finish(at: now) }
            try Self.save(rotation, db)
            return rotation
        }
    }

    private static func save(_ rotation: KeyRotation, _ db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
            arguments: [Self.rotation, try RowCoding.json(rotation)])
    }
}

// MARK: Erasure

extension Store {
    /// The largest number of assets of one erasure.
    package static let mostErased = 10_000

    /// Deletes the sealed keys of the assets that still have these versions, in one transaction; their files are not
    /// readable from then on, also for readers that have them open. Then overwrites the places that contained the keys:
    /// `secure_delete` in the pages of the catalog, and a checkpoint that empties the write-ahead log.
    ///
    /// Throws `.invalidField("shred")` if an asset is not encrypted.
    package func erase(_ versions: [AssetVersion], at now: Timestamp) async throws(CacheError) -> ErasureReceipt {
        guard versions.count <= Self.mostErased else {
            throw .invalid("shred", "At most \(Self.mostErased) assets can be erased at once; select fewer.")
        }
        let (receipt, files) = try await catalog.write { db in
            let sequence = (try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'erasures'") ?? 0) + 1
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (name, value) VALUES ('erasures', ?)", arguments: [sequence])
            var (assets, files): ([ErasureReceipt.Asset], [Int64]) = ([], [])
            for version in versions {
                guard let (asset, file) = try Self.erase(version, db) else { continue }
                assets.append(asset)
                files.append(file)
            }
            return (ErasureReceipt(sequence: sequence, erasedAt: now, assets: assets), files)
        }
        erased.withLock { $0.formUnion(files) }
        for asset in receipt.assets { for file in openFiles.files(of: asset.id) { file.cipher?.destroy() } }
        var complete = receipt
        complete.isLogEmpty = await emptyLog()
        let marker = layout.catalog.split(separator: "/").last.map { $0 + ".damaged-" } ?? ""
        complete.copies = try disk.list(layout.directory).filter { $0.hasPrefix(marker) }.sorted()
        return complete
    }

    /// Replaces the sealed key of an asset by an empty one; it marks the file as unreadable until it is deleted. Nil
    /// if the asset has no bytes, or is of another version.
    private static func erase(
        _ version: AssetVersion, _ db: Database
    ) throws -> (asset: ErasureReceipt.Asset, file: Int64)? {
        guard let row = try version.row(columns: "key, file_serial", db),
            let file = row[1] as Int64?
        else { return nil }
        guard let key = try NonceTable.key(of: file, db) else {
            throw CacheError.invalid(
                "shred", "The asset \(version.id) is not stored encrypted; purge it without shred, or select others.")
        }
        try db.execute(sql: "DELETE FROM nonces WHERE file = ?", arguments: [file])
        try db.execute(
            sql: "UPDATE file_keys SET sealed = zeroblob(0) WHERE file = ?", arguments: [file])
        let digest = HashFunction.sha256.digest(of: (row[0] as String).utf8).hexDigits
        return (
            ErasureReceipt.Asset(
                id: version.id, nameDigest: digest, generation: version.generation, masterKey: key.masterKey), file
        )
    }

    /// Copies the write-ahead log into the catalog and truncates it, so that no earlier version of a page remains there.
    /// Returns false if readers of the catalog prevent it.
    package func emptyLog() async -> Bool {
        let busy: Bool? = try? await catalog.pool.writeWithoutTransaction { db in
            try Bool.fetchOne(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        return busy == false
    }
}
