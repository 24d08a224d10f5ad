/// The treatment of assets whose master key is missing.
package enum MissingKeyRule: String, Hashable, Sendable, CaseIterable, ChoiceCodable {
    /// Reads fail with `encryptionKeyMissing`.
    case refuse
    /// The bytes are fetched again, and replace those that cannot be decrypted.
    case refetch
}

/// The treatment of stored assets after `encrypt` of their origin was changed.
package enum EncryptionChangeRule: String, Hashable, Sendable, CaseIterable, ChoiceCodable {
    /// They are removed, and fetched again by their next reads.
    case refetch
    /// They are rewritten in the new form.
    case convert
}

/// The progress of sealing the keys of all files again under one master key.
package struct KeyRotation: Hashable, Sendable, Codable {
    /// The identifier of the master key that seals the keys.
    package let activeKey: String
    /// Milliseconds since 1970.
    private let started: Int64
    private var finished: Int64?
    /// The number of files with other master keys at the start.
    package let files: Int
    /// The files whose keys are sealed again.
    package var filesDone = 0
    /// The files whose master key is missing.
    package var filesLocked = 0
    /// The last file that was visited.
    package var last: Int64 = 0

    package init(activeKey: String, startedAt: Timestamp, files: Int) {
        self.activeKey = activeKey
        started = startedAt.milliseconds
        self.files = files
    }

    package var startedAt: Timestamp { Timestamp(milliseconds: started) }

    /// Nil while the rotation runs.
    package var finishedAt: Timestamp? { finished.map { Timestamp(milliseconds: $0) } }

    /// Ends the rotation.
    package mutating func finish(at now: Timestamp) { finished = now.milliseconds }
}

/// The receipt of an erasure: the keys of these files no longer exist in the store.
package struct ErasureReceipt: Hashable, Sendable {
    /// An erased asset.
    package struct Asset: Hashable, Sendable {
        package let id: AssetID
        /// The SHA-256 of the key, in hexadecimal digits.
        package let nameDigest: String
        package let generation: Int64
        /// The identifier of the master key that sealed the key of the file.
        package let masterKey: String

        package init(id: AssetID, nameDigest: String, generation: Int64, masterKey: String) {
            self.id = id
            self.nameDigest = nameDigest
            self.generation = generation
            self.masterKey = masterKey
        }
    }

    /// The number of the erasure in this store; it only grows.
    package let sequence: Int64
    package let erasedAt: Timestamp
    package let assets: [Asset]
    /// Whether the write-ahead log of the catalog was emptied. Otherwise earlier pages with the keys remain in it until the
    /// service has emptied it later.
    package var isLogEmpty = true
    /// The names of damaged catalogs in the data directory that were set aside: they can contain the sealed keys, and must
    /// be deleted.
    package var copies: [String] = []

    package init(sequence: Int64, erasedAt: Timestamp, assets: [Asset]) {
        self.sequence = sequence
        self.erasedAt = erasedAt
        self.assets = assets
    }
}
