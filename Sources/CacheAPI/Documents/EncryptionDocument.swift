import CacheCore
package import CacheEngine

/// The `Encryption` schema.
package struct EncryptionDocument: Codable {
    package struct Key: Codable {
        package var keyId: String
        package var active, available: Bool
        package var files: Int
    }

    package struct Origin: Codable {
        package var name: String
        package var encrypt: Bool
        package var assetsLeft: Int
    }

    package struct Rotation: Codable {
        package var state, activeKey: String
        var startedAt: Timestamp
        var finishedAt: Timestamp?
        package var files, filesDone, filesLocked: Int
        package var error: String?
    }

    var activeKey: String?
    var onMissingKey, onChange: String
    package var keys: [Key]
    package var origins: [Origin]
    /// Nil: there was none.
    package var rotation: Rotation?
}

extension EncryptionDocument {
    package init(_ report: EncryptionReport) {
        self.init(
            activeKey: report.keys.first(where: \.isActive)?.id, onMissingKey: report.onMissingKey.rawValue,
            onChange: report.onChange.rawValue,
            keys: report.keys.map { key in
                Key(keyId: key.id, active: key.isActive, available: key.isAvailable, files: key.files)
            },
            origins: report.origins.map { origin in
                Origin(name: origin.name, encrypt: origin.isEncrypted, assetsLeft: origin.assetsLeft)
            },
            rotation: report.rotation.map { rotation in
                Rotation(
                    state: report.isRotating ? "running" : "done", activeKey: rotation.activeKey,
                    startedAt: rotation.startedAt, finishedAt: rotation.finishedAt, files: rotation.files,
                    filesDone: rotation.filesDone, filesLocked: rotation.filesLocked, error: report.fault)
            })
    }
}

/// The `ErasureReceipt` schema.
package struct ErasureReceiptDocument: Codable {
    package struct Asset: Codable {
        var assetId: AssetID
        var nameDigest: String
        var generation: Int64
        package var masterKey: String
    }

    private static let coverage = """
        The keys are deleted in this store. Copies of the data directory from before become unreadable when the named \
        master keys, and those that sealed the content before earlier rotations, are destroyed; rotate after the \
        erasure to make that possible. Freed blocks of the file system and of the device are not covered.
        """

    package var sequence: Int64
    var erasedAt: Timestamp
    package var assets: [Asset]
    package var logEmptied: Bool
    package var copies: [String]
    var coverage: String
}

extension ErasureReceiptDocument {
    init(_ receipt: ErasureReceipt) {
        self.init(
            sequence: receipt.sequence, erasedAt: receipt.erasedAt,
            assets: receipt.assets.map { asset in
                Asset(
                    assetId: asset.id, nameDigest: asset.nameDigest, generation: asset.generation,
                    masterKey: asset.masterKey)
            }, logEmptied: receipt.isLogEmpty, copies: receipt.copies, coverage: Self.coverage)
    }
}
