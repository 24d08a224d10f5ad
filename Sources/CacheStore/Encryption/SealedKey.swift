import CacheCore
package import Cryptography
package import Foundation

/// The key of one file, encrypted with a master key: AES-256-GCM, authenticated together with the serial of the file
/// and the identifier of the master key.
package struct SealedKey: Hashable, Sendable {
    /// The identifier of the master key.
    package let masterKey: String
    /// Nonce, ciphertext and tag.
    package let bytes: Data

    package init(masterKey: String, bytes: Data) {
        self.masterKey = masterKey
        self.bytes = bytes
    }

    /// Whether the key was erased; the row stays until the asset is removed.
    var isErased: Bool { bytes.isEmpty }

    /// Seals the key of a file.
    init(_ key: SymmetricKey, of serial: Int64, with master: MasterKey) throws(CacheError) {
        let plain = key.withUnsafeBytes { Array($0) }
        guard let sealed = master.key.sealed(plain, authenticating: Self.context(serial, master.id)) else {
            throw CacheError(.internal, "A key could not be sealed.")
        }
        self.init(masterKey: master.id, bytes: Data(sealed))
    }

    /// The key of the file; nil if the master key is another one, or the sealed key is damaged.
    package func opened(with master: MasterKey, of serial: Int64) -> SymmetricKey? {
        let key = master.key.opened(Array(bytes), authenticating: Self.context(serial, master.id))
        return key?.count == 32 ? key.map(SymmetricKey.init) : nil
    }

    private static func context(_ serial: Int64, _ id: String) -> [UInt8] {
        withUnsafeBytes(of: serial.bigEndian) { Array($0) } + id.utf8
    }

    /// The error of bytes that cannot be decrypted.
    static func missing(_ key: SealedKey?) -> CacheError {
        guard key?.isErased != true else { return CacheError(.encryptionKeyMissing, "The bytes were erased.") }
        return missing(id: key?.masterKey)
    }

    /// The error of a missing master key; nil: there is none.
    static func missing(id: String?) -> CacheError {
        guard let id else { return CacheError(.encryptionKeyMissing, "There is no master key for new content.") }
        return CacheError(
            .encryptionKeyMissing,
            "The master key \"\(id)\" of these bytes is missing or wrong: restore it in encryption.keysDirectory or "
                + "encryption.keyCommand, or let the bytes be fetched again with encryption.onMissingKey: refetch.")
    }
}

/// A master key. It has no description.
package struct MasterKey: Sendable {
    package let id: String
    let key: SymmetricKey

    /// - Parameter key: 32 bytes.
    package init(id: String, key: [UInt8]) {
        self.id = id
        self.key = SymmetricKey(key)
    }
}
