import CacheCore
import Crypto
import Foundation

/// Seals what must not lie in the catalog in the clear: AES-GCM under the key in `secret.key`.
struct SecretBox: Sendable {
    private let key: SymmetricKey

    init(key: [UInt8]) { self.key = SymmetricKey(data: key) }

    static let keyLength = 32

    func seal(_ text: String) throws(CacheError) -> Data {
        do {
            guard let sealed = try AES.GCM.seal(Data(text.utf8), using: key).combined else {
                throw CacheError(.internal, "A secret could not be sealed.")
            }
            return sealed
        } catch {
            throw CacheError(.internal, "A secret could not be sealed.", cause: error)
        }
    }

    func open(_ sealed: Data) throws(CacheError) -> String {
        do {
            return String(decoding: try AES.GCM.open(AES.GCM.SealedBox(combined: sealed), using: key), as: UTF8.self)
        } catch {
            throw CacheError(
                .storageCorrupt, "A sealed value of the catalog cannot be opened with secret.key.", cause: error)
        }
    }
}

extension SecretBox {
    /// Reads the key of a store, or makes one; the file is complete on the device before it has its name.
    init(_ layout: StoreLayout, disk: any Disk) throws(CacheError) {
        guard try disk.status(of: layout.secretKey) == nil else {
            self.init(key: try Self.readKey(layout, disk))
            return
        }
        let key = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
        try disk.unlink(layout.secretKeyDraft)
        let descriptor = try disk.open(layout.secretKeyDraft, .create)
        defer { disk.close(descriptor) }
        try disk.writeAll(descriptor, key)
        try disk.sync(descriptor)
        try disk.rename(layout.secretKeyDraft, to: layout.secretKey)
        try disk.syncDirectory(layout.directory)
        self.init(key: key)
    }

    private static func readKey(_ layout: StoreLayout, _ disk: any Disk) throws(CacheError) -> [UInt8] {
        let descriptor = try disk.open(layout.secretKey, .readOnly)
        defer { disk.close(descriptor) }
        let key = try disk.readAll(descriptor, limit: keyLength + 1)
        guard key.count == keyLength else {
            throw CacheError(
                .storageCorrupt, "\(layout.secretKey) is damaged: it must hold exactly \(keyLength) bytes.")
        }
        return key
    }
}
