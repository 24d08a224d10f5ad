package import CacheCore
package import CacheEngine

extension EncryptionReport {
    /// The `Encryption` schema.
    package var json: JSON {
        [
            "activeKey": .text(keys.first(where: \.isActive)?.id), "onMissingKey": .string(onMissingKey.rawValue),
            "keys": .array(
                keys.map { key in
                    [
                        "keyId": .string(key.id), "active": .bool(key.isActive), "available": .bool(key.isAvailable),
                        "files": .count(key.files),
                    ]
                }),
            "origins": .array(
                origins.map { origin in
                    [
                        "name": .string(origin.name), "encrypt": .bool(origin.isEncrypted),
                        "assetsLeft": .count(origin.assetsLeft),
                    ]
                }),
            "rotation": rotation.map { rotation in
                [
                    "state": .string(isRotating ? "running" : "done"), "activeKey": .string(rotation.activeKey),
                    "startedAt": .instant(rotation.startedAt), "finishedAt": .instant(rotation.finishedAt),
                    "files": .count(rotation.files), "filesDone": .count(rotation.filesDone),
                    "filesLocked": .count(rotation.filesLocked), "error": .text(fault),
                ]
            } ?? .null,
        ]
    }
}
