import CacheCore
import Cryptography
import Foundation

/// Encrypts values that must not be stored in plain text: AES-GCM with the key in `secret.key`.
struct SecretBox: Sendable {
    private let key: SymmetricKey

    init(key: [UInt8]) { self.key = SymmetricKey(key) }

    /// Length of the key in bytes.
    static let keyLength = 32

    /// The first half of the HMAC-SHA256 of a text, as 32 hexadecimal digits.
    func digest(of text: String) -> String {
        HashFunction.sha256.code(of: text.utf8, key).prefix(16).hexDigits
    }

    /// Encrypts a text; returns nonce, ciphertext and tag.
    func seal(_ text: String) throws(CacheError) -> Data {
        guard let sealed = key.sealed(Array(text.utf8)) else {
            throw CacheError(.internal, "A secret could not be encrypted.")
        }
        return Data(sealed)
    }

    /// Decrypts a value. Throws `storageCorrupt` if it was encrypted with another key or is damaged.
    func open(_ sealed: Data) throws(CacheError) -> String {
        guard let opened = key.opened(Array(sealed)) else {
            throw CacheError(.storageCorrupt, "A sealed catalog value cannot be decrypted with secret.key.")
        }
        return String(decoding: opened, as: UTF8.self)
    }
}

/// The key file.
extension SecretBox {
    /// Reads the key of a store, or creates one. The key is written to a draft file, synced, and then renamed:
    /// `secret.key` is complete or missing at any time.
    init(_ layout: StoreLayout, disk: any Disk) throws(CacheError) {
        guard try disk.status(of: layout.secretKey) == nil else {
            self.init(key: try Self.readKey(layout, disk))
            return
        }
        let key = SymmetricKey.randomBytes(Self.keyLength)
        // A draft left by an interrupted start may be incomplete.
        try disk.unlink(layout.secretKeyDraft)
        let descriptor = try disk.open(layout.secretKeyDraft, .create)
        defer { disk.close(descriptor) }
        try disk.writeAll(descriptor, key)
        try disk.sync(descriptor)
        try disk.rename(layout.secretKeyDraft, to: layout.secretKey)
        try disk.syncDirectory(layout.directory)
        self.init(key: key)
    }

    /// Reads the key. Throws `storageCorrupt` if the file has another length.
    private static func readKey(_ layout: StoreLayout, _ disk: any Disk) throws(CacheError) -> [UInt8] {
        let descriptor = try disk.open(layout.secretKey, .readOnly)
        defer { disk.close(descriptor) }
        let key = try disk.readAll(descriptor, limit: keyLength + 1)
        guard key.count == keyLength else {
            throw CacheError(
                .storageCorrupt, "\(layout.secretKey) is damaged: it must contain exactly \(keyLength) bytes.")
        }
        return key
    }
}
